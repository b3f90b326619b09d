package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

const (
	adminToken = "bench-admin"
	getTarget  = "/t/x/c?id=eq.500"
)

// startNode starts a node of its own folder with the tenant x: a collection c of a thousand documents whose answer is
// about 200 bytes.
func (l *lab) startNode(cpu, name string, flags ...string) (port int, err error) {
	port = freePort()
	dir := filepath.Join(l.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, err
	}
	args := append([]string{"node", "--dir", dir, "--http", address(port), "--admin-token", adminToken}, flags...)
	if err := l.start(cpu, port, l.fenec, args...); err != nil {
		return 0, err
	}
	return port, nil
}

// fill makes the tenant x at base, a node's or a router's address.
func fill(base string) error {
	if _, err := send("POST", base+"/t/x/query", "", `{"query": "create collection c (title text, body text, year int)"}`); err != nil {
		return err
	}
	var docs []string
	for i := range 1000 {
		docs = append(docs, fmt.Sprintf(`{"title": "note %d", "body": %q, "year": %d}`, i, strings.Repeat("words ", 24), i))
	}
	_, err := send("POST", base+"/t/x/c", "", "["+strings.Join(docs, ",")+"]")
	return err
}

func createTenant(port int, name string) error {
	_, err := send("PUT", "http://"+address(port)+"/_admin/tenants/"+name, adminToken, "")
	return err
}

// servePeer answers every request with the body in the file body, as a bare net/http handler does.
func servePeer(args string) {
	listen, file, _ := strings.Cut(args, ",")
	body, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	err = http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	panic(err)
}

// nodeFigures compares a node's GET of one document with a net/http handler that answers the same bytes.
func nodeFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	node, err := l.startNode(pinned, "node", "--sync", "off")
	if err != nil {
		return err
	}
	peer, err := l.startPeer(node)
	if err != nil {
		return err
	}
	if err := r.figure(figure{
		name: "GET /t/x/c?id=eq.N, p50", unit: "us", atMost: 1,
		ours: side{"fenec node", l.ping(node, getTarget, 10000)}, peer: side{"net/http", l.ping(peer, getTarget, 10000)},
	}); err != nil {
		return err
	}
	if !installed("wrk") {
		r.skip("GET at 64 connections", "wrk is not installed")
		return nil
	}
	return r.figure(figure{
		name: "GET at 64 connections, both on one processor", unit: "/s", rate: true,
		ours: side{"fenec node", l.wrk(node, getTarget)}, peer: side{"net/http", l.wrk(peer, getTarget)},
	})
}

// startPeer starts the handler with the bytes the node answers.
func (l *lab) startPeer(node int) (port int, err error) {
	if err := createTenant(node, "x"); err != nil {
		return 0, err
	}
	base := "http://" + address(node)
	if err := fill(base); err != nil {
		return 0, err
	}
	body, err := send("GET", base+getTarget, "", "")
	if err != nil {
		return 0, err
	}
	file := filepath.Join(l.dir, "body")
	if err := os.WriteFile(file, body, 0o644); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	port = freePort()
	return port, l.start(pinned, port, self, "peer", address(port)+","+file)
}

// routerFigures compares a request through the router with the same one straight, beside other things that forward.
func routerFigures(r *report) error {
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	straight, err := l.startNode(pinned, "pinned", "--sync", "off")
	if err != nil {
		return err
	}
	router, err := l.startRouter(pinned, "pinned.directory", straight)
	if err != nil {
		return err
	}
	relay := freePort()
	if err := l.start(pinned, relay, l.ruler, "relay", fmt.Sprint(relay), fmt.Sprint(straight)); err != nil {
		return err
	}
	if err := l.addedFigures(r, straight, router, relay); err != nil {
		return err
	}
	return l.throughput(r)
}

// addedFigures are what one hop costs one client, everything on one processor.
func (l *lab) addedFigures(r *report, straight, router, relay int) error {
	node := l.ping(straight, getTarget, 5000)
	added := func(port int) func() (float64, error) {
		through := l.ping(port, getTarget, 5000)
		return func() (float64, error) {
			a, err := through()
			if err != nil {
				return 0, err
			}
			b, err := node()
			return a - b, err
		}
	}
	figures := []figure{
		{
			name: "GET through the router, p50", unit: "us", atMost: 2.6,
			ours: side{"router", l.ping(router, getTarget, 5000)}, peer: side{"straight", node},
		},
		{
			name: "time the router adds", unit: "us", atMost: 2,
			ours: side{"router", added(router)}, peer: side{"C relay", added(relay)},
		},
	}
	for name, start := range map[string]func(cpu string, workers, upstream int) (int, error){"nginx": l.startNginx, "haproxy": l.startHAProxy} {
		if !installed(name) {
			r.skip("time the router adds, beside "+name, name+" is not installed")
			continue
		}
		port, err := start(pinned, 1, straight)
		if err != nil {
			return err
		}
		figures = append(figures, figure{
			name: "time the router adds, beside " + name + " with one worker", unit: "us",
			ours: side{"router", added(router)}, peer: side{name, added(port)},
		})
	}
	for _, f := range figures {
		if err := r.figure(f); err != nil {
			return err
		}
	}
	return nil
}

// throughput is what 64 connections get through, nothing pinned.
func (l *lab) throughput(r *report) error {
	if !installed("wrk") {
		r.skip("GET at 64 connections", "wrk is not installed")
		return nil
	}
	node, err := l.startNode("", "free", "--sync", "off")
	if err != nil {
		return err
	}
	router, err := l.startRouter("", "free.directory", node)
	if err != nil {
		return err
	}
	for name, start := range map[string]func(cpu string, workers, upstream int) (int, error){"nginx": l.startNginx, "haproxy": l.startHAProxy} {
		if !installed(name) {
			r.skip("GET at 64 connections, beside "+name, name+" is not installed")
			continue
		}
		port, err := start("", 2, node)
		if err != nil {
			return err
		}
		f := figure{
			name: "GET at 64 connections, beside " + name + " with two workers", unit: "/s", rate: true,
			ours: side{"router", l.wrk(router, getTarget)}, peer: side{name, l.wrk(port, getTarget)},
		}
		if name == "nginx" {
			f.atLeast = 0.95
		}
		if err := r.figure(f); err != nil {
			return err
		}
	}
	return nil
}

// startRouter starts a router with one node, and fills the tenant x through it.
func (l *lab) startRouter(cpu, directory string, nodes ...int) (port int, err error) {
	port = freePort()
	if err := l.start(cpu, port, l.fenec, "shard", "--listen", address(port), "--directory", filepath.Join(l.dir, directory)); err != nil {
		return 0, err
	}
	base := "http://" + address(port)
	for i, node := range nodes {
		record := fmt.Sprintf(`{"addr": "%s", "token": "%s"}`, address(node), adminToken)
		if _, err := send("PUT", fmt.Sprintf("%s/_shard/nodes/n%d", base, i+1), "", record); err != nil {
			return 0, err
		}
	}
	if _, err := send("PUT", base+"/_shard/tenants/x", "", `{"node": "n1"}`); err != nil {
		return 0, err
	}
	return port, fill(base)
}

func (l *lab) startNginx(cpu string, workers, upstream int) (port int, err error) {
	port = freePort()
	dir := filepath.Join(l.dir, fmt.Sprintf("nginx-%d", port))
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return 0, err
	}
	conf := fmt.Sprintf(`
daemon off; worker_processes %d; pid %s/pid; error_log %s/error;
events { worker_connections 1024; }
http {
  access_log off; client_body_temp_path %s/body; proxy_temp_path %s/proxy;
  fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;
  upstream node { server %s; keepalive 128; }
  server { listen %s; keepalive_requests 100000000;
    location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ""; } }
}`, workers, dir, dir, dir, dir, dir, dir, dir, address(upstream), address(port))
	file := filepath.Join(dir, "conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return 0, err
	}
	return port, l.start(cpu, port, "nginx", "-p", dir, "-c", file)
}

func (l *lab) startHAProxy(cpu string, workers, upstream int) (port int, err error) {
	port = freePort()
	conf := fmt.Sprintf(`
global
  nbthread %d
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend in
  bind %s
  default_backend node
backend node
  server n1 %s
`, workers, address(port), address(upstream))
	file := filepath.Join(l.dir, fmt.Sprintf("haproxy-%d", port))
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return 0, err
	}
	return port, l.start(cpu, port, "haproxy", "-f", file, "-db")
}
