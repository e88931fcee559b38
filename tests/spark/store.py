"""Has the traces of a catalogue in an object store analysed by an engine, twice, and says what has become of them.

usage: store.py spark|sail AGENT URL, with the store's keys and its address in the environment
"""

import sys

from engines import driver, session


def main():
    engine, agent, url = sys.argv[1:]
    spark = session(engine)
    for _ in range(2):
        done = driver.analyze(spark, url, agent=agent)
        print(engine, *sorted(done["outcome"]), sep=",")
        print(*done["why"].dropna())
    spark.stop()


main()
