package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// serve answers GET / and POST /echo on a port of its own, which it prints, until its standard input ends.
func serve() {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "hello, world\n")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	listenUntilEndOfInput(mux)
}

func listenUntilEndOfInput(handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go http.Serve(listener, handler)
	io.Copy(io.Discard, os.Stdin)
}
