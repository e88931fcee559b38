// Two painters, goroutines, wait for a sync.Mutex that a third keeps while it sleeps. All of that is within Go's runtime, and the
// kernel sees none of it: a screen has answered, too, if it says that goroutines are not seen.
package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var canvas sync.Mutex
var lost int64

//go:noinline
func varnish() {
	canvas.Lock()
	time.Sleep(11 * time.Millisecond)
	canvas.Unlock()
}

func main() {
	end := time.Now().Add(1500 * time.Millisecond)
	var all sync.WaitGroup
	run := func(body func()) {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Now().Before(end) {
				body()
			}
		}()
	}
	run(func() {
		time.Sleep(25 * time.Millisecond)
		varnish()
	})
	for i := 0; i < 2; i++ {
		run(func() {
			since := time.Now()
			canvas.Lock()
			canvas.Unlock()
			if waited := time.Since(since); waited >= 20*time.Microsecond {
				atomic.AddInt64(&lost, int64(waited))
			}
			time.Sleep(time.Millisecond)
		})
	}
	all.Wait()
	fmt.Fprintf(os.Stderr, "TRUTH who=painters what=sync.Mutex where=varnish lost_ms=%.1f unseen=goroutines\n", float64(lost)/1e6)
}
