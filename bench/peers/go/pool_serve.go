package main

import (
	"encoding/json"
	"io"
	"net/http"
)

type request struct {
	query  string
	result chan string
}

// poolServe has a buffered channel as its queue and workers that take from it; a job does nothing. POST /api/agent/run
// submits one and waits for it, 503 if the queue is full; GET /healthz says ok.
func poolServe() {
	queue := make(chan request, number("queue"))
	for i := 0; i < number("workers"); i++ {
		go func() {
			for asked := range queue {
				asked.result <- "done"
			}
		}()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("/api/agent/run", func(w http.ResponseWriter, r *http.Request) {
		values := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodPost || values.Get("session_id") == "" || values.Get("query") == "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		asked := request{values.Get("query"), make(chan string, 1)}
		select {
		case queue <- asked:
		default:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		select {
		case result := <-asked.result:
			json.NewEncoder(w).Encode(map[string]string{"status": "success", "result": result})
		case <-r.Context().Done():
		}
	})
	listenUntilEndOfInput(mux)
}
