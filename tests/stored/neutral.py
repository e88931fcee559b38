"""Takes out of a spool what names the machine that it was recorded on; prints the names of threads that are in it.

usage: python neutral.py SPOOL

Of the format it knows only frames: magic, version, kind, length, CRC-32 of the last three and the payload.
"""

import json
import re
import struct
import sys
import zlib
from collections import Counter
from pathlib import Path

HEADER = struct.Struct("<4sHHII")
START = 1
KERNEL = 8
MAPPINGS = 11
NEUTRAL = {
    "host": "host",
    "boot_id": "00000000-0000-4000-8000-000000000000",
    "kernel": "6.18.0",
    "cpu_model": "x86-64",
}


# Names of threads, 16 bytes with their NULs, that a program has which was executed from a file in memory.
UNNAMED = re.compile(rb"memfd:[^\0]{0,9}\0+")


def neutral(kind: int, payload: bytes) -> bytes:
    """The payload of a frame, without names of the machine."""
    if kind == START:
        return json.dumps(json.loads(payload) | NEUTRAL, separators=(",", ":")).encode()
    if kind == MAPPINGS:
        # Libraries of the machine are on others, too, and would be searched for names there.
        return payload.replace(b'"path":"/usr/', b'"path":"/nowhere/')
    if kind == KERNEL:
        return UNNAMED.sub(lambda name: b"program".ljust(len(name[0]), b"\0"), payload)
    return payload


def main() -> None:
    """Rewrites all files."""
    names: Counter[str] = Counter()
    for file in sorted(Path(sys.argv[1]).iterdir()):
        data, out = file.read_bytes(), b""
        while len(data) >= HEADER.size:
            magic, version, kind, length, _ = HEADER.unpack_from(data)
            if len(data) < HEADER.size + length:
                break
            payload = neutral(kind, data[HEADER.size : HEADER.size + length])
            data = data[HEADER.size + length :]
            crc = zlib.crc32(struct.pack("<HI", kind, len(payload)) + payload)
            out += HEADER.pack(magic, version, kind, len(payload), crc) + payload
            if kind == KERNEL:
                names.update(m.decode() for m in re.findall(rb"[a-zA-Z][\w:/.+-]{2,15}(?=\0)", payload))
        # What is cut short stays.
        file.write_bytes(out + data)
    print(f"{sys.argv[1]}: " + ", ".join(f"{name} {n}" for name, n in names.most_common() if n > 2))


if __name__ == "__main__":
    main()
