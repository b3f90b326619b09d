package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postgres is a PostgreSQL of this run's own: a folder that is removed, a unix socket in it and no port.
type postgres struct {
	dir, bin string
	as       *syscall.Credential // PostgreSQL does not run as root
	server   *exec.Cmd
	stderr   bytes.Buffer
}

// errNoPostgres is why there is nothing to compare with.
var errNoPostgres = errors.New("PostgreSQL 15 is not installed")

// postgresFolder is where Debian has the server's commands.
const postgresFolder = "/usr/lib/postgresql/15/bin"

// postgresSettings give it what we have: all of the data and of a sort in memory, and nothing else to do meanwhile.
var postgresSettings = []string{
	"shared_buffers=1GB", "work_mem=512MB", "maintenance_work_mem=512MB", "max_wal_size=8GB", "fsync=off", "autovacuum=off", "listen_addresses=",
}

// startPostgres answers errNoPostgres where there is none.
func startPostgres() (*postgres, error) {
	if !installed(filepath.Join(postgresFolder, "initdb")) || !installed("psql") {
		return nil, errNoPostgres
	}
	dir, err := os.MkdirTemp("", "fenec-bench")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir, bin: postgresFolder}
	if err := p.start(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *postgres) start() error {
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return fmt.Errorf("%w: %w", errNoPostgres, err)
		}
		uid, badUser := strconv.Atoi(u.Uid)
		gid, badGroup := strconv.Atoi(u.Gid)
		if err := errors.Join(badUser, badGroup); err != nil {
			return fmt.Errorf("the user postgres: %w", err)
		}
		p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(p.dir, uid, gid); err != nil {
			return err
		}
	}
	data := filepath.Join(p.dir, "data")
	initdb := p.command("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	args := []string{"-D", data, "-k", p.dir}
	for _, s := range postgresSettings {
		args = append(args, "-c", s)
	}
	p.server = p.command("postgres", args...)
	p.server.Stderr = &p.stderr
	if err := p.server.Start(); err != nil {
		return err
	}
	deadline := time.Now().Add(20 * time.Second)
	for exec.Command("pg_isready", "-q", "-h", p.dir).Run() != nil {
		if time.Now().After(deadline) {
			return fmt.Errorf("PostgreSQL does not answer: %s", p.stderr.Bytes())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

func (p *postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return cmd
}

// close stops the server and removes its folder.
func (p *postgres) close() {
	if p.server != nil && p.server.Process != nil {
		p.server.Process.Signal(syscall.SIGINT) // a fast shutdown
		p.server.Wait()
	}
	os.RemoveAll(p.dir)
}

// psql runs a script and answers what it printed.
func (p *postgres) psql(script io.Reader) (string, error) {
	cmd := exec.Command("psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", p.dir, "-U", "postgres", "-f", "-")
	cmd.Stdin = script
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, stderr.Bytes())
	}
	return string(out), nil
}

// load makes a table of rows and analyzes it.
func (p *postgres) load(table, columns string, rows func(w *bytes.Buffer)) error {
	var script bytes.Buffer
	fmt.Fprintf(&script, "create table %s (%s);\ncopy %s from stdin;\n", table, columns, table)
	rows(&script)
	fmt.Fprintf(&script, "\\.\nvacuum analyze %s;\n", table)
	_, err := p.psql(&script)
	return err
}

// setting is how many processes a query may use beside its own, and whether it is compiled. Its planner is told that
// handing rows over costs nothing, or it would leave the worker out of a sort.
type setting struct {
	workers int
	jit     string
}

func (s setting) String() string {
	workers := map[int]string{0: "no worker", 1: "one worker"}[s.workers]
	return "PostgreSQL, " + workers + ", jit " + s.jit
}

// faster is the setting of a number of workers under which the query is faster.
func (p *postgres) faster(workers, runs int, query string) (setting, error) {
	on, off := setting{workers, "on"}, setting{workers, "off"}
	compiled, err := p.query(on, runs, query)()
	if err != nil {
		return on, err
	}
	plain, err := p.query(off, runs, query)()
	if compiled < plain {
		return on, err
	}
	return off, err
}

// query is the median milliseconds of n runs on one connection, as psql measures them.
func (p *postgres) query(s setting, n int, query string) func() (float64, error) {
	script := fmt.Sprintf("set max_parallel_workers_per_gather = %d;\nset parallel_setup_cost = 0;\nset parallel_tuple_cost = 0;\nset jit = %s;\n\\timing on\n%s",
		s.workers, s.jit, strings.Repeat(query+";\n", n))
	return func() (float64, error) {
		out, err := p.psql(strings.NewReader(script))
		if err != nil {
			return 0, err
		}
		var took []float64
		for line := range strings.Lines(out) {
			rest, ok := strings.CutPrefix(line, "Time: ")
			if !ok {
				continue
			}
			ms, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0, err
			}
			took = append(took, ms)
		}
		if len(took) != n {
			return 0, fmt.Errorf("psql printed %d times, wanted %d: %s", len(took), n, out)
		}
		return median(took), nil
	}
}
