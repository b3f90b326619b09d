package router

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// call asks the router over a connection of its own.
func (r *running) call(method, path, body string) (status int, answer string) {
	r.t.Helper()
	status, answer, err := ask(r.addr, method, path, body, r.config.Token)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, answer
}

// must is call that fails the test unless the answer has the status.
func (r *running) must(method, path, body string, want int) string {
	r.t.Helper()
	status, answer := r.call(method, path, body)
	if status != want {
		r.t.Fatalf("%s %s answers %d %s, want %d", method, path, status, answer, want)
	}
	return answer
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func ask(addr, method, path, body, token string) (status int, answer string, err error) {
	req, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func hexa(n int) string { return strconv.FormatInt(int64(n), 16) }

func hmacHex(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}
