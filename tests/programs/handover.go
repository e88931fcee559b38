// Two goroutines, each with a thread of its own, hand a token to each other. Each keeps it for a millisecond, asleep in a system
// call; meanwhile the other's thread has nothing to do but to wait for it, as Go's runtime does it: at a futex.
// Prints the threads, and for each round when the first one had given the token away and when it had it again.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// CLOCK_MONOTONIC, ns; Go's own has another zero.
func now() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func keep() {
	syscall.Nanosleep(&syscall.Timespec{Nsec: 1000000}, nil)
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	there, back, second := make(chan int), make(chan int), make(chan int)
	go func() {
		runtime.LockOSThread()
		second <- syscall.Gettid()
		for range there {
			keep()
			back <- 0
		}
	}()
	runtime.LockOSThread()
	other := <-second
	told := make([]string, rounds)
	for round := range told {
		keep()
		there <- 0
		given := now()
		<-back
		told[round] = fmt.Sprintf("[%d, %d]", given, now())
	}
	fmt.Printf("{\"pid\": %d, \"first\": %d, \"second\": %d, \"rounds\": [%s]}\n",
		os.Getpid(), syscall.Gettid(), other, strings.Join(told, ", "))
}
