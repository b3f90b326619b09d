package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayImport is which way imports point: each package of ours and those of ours
// it may import. A package not listed is under the rule of the nearest listed
// one above it. Tests may import what their package may, and the test rooms.
var mayImport = map[string][]string{
	"fenec": {"fenec/internal/command"},
	"fenec/internal/command": {
		"fenec/node", "fenec/router", "fenec/engine", "fenec/engine/wal",
		"fenec/client", "fenec/internal/importer", "fenec/internal/tail", "fenec/internal/vfs",
	},
	"fenec/node": {
		"fenec/node/rest", "fenec/node/tenants", "fenec/replication", "fenec/engine/claim", "fenec/engine/feed", "fenec/engine", "fenec/engine/doc", "fenec/engine/fail",
		"fenec/engine/wal", "fenec/internal/edge", "fenec/internal/http1", "fenec/internal/vfs",
	},
	"fenec/node/tenants": {
		"fenec/replication", "fenec/engine/claim", "fenec/engine/feed", "fenec/engine", "fenec/engine/fail", "fenec/engine/wal",
		"fenec/internal/http1", "fenec/internal/vfs", "fenec/internal/random",
	},
	"fenec/node/rest":    {"fenec/engine", "fenec/engine/doc", "fenec/engine/fail"},
	"fenec/router":       {"fenec/router/directory", "fenec/engine/fail", "fenec/internal/edge", "fenec/internal/random", "fenec/internal/http1", "fenec/internal/vfs"},
	"fenec/replication":  {"fenec/engine/feed", "fenec/engine", "fenec/engine/fail", "fenec/engine/wal"},
	"fenec/lease":        {},
	"fenec/engine/claim": {"fenec/engine", "fenec/engine/doc", "fenec/engine/fail", "fenec/internal/vfs"},
	"fenec/engine/feed":  {"fenec/engine", "fenec/engine/doc", "fenec/engine/fail", "fenec/engine/wal", "fenec/internal/vfs"},
	"fenec/engine": {
		"fenec/engine/derived", "fenec/engine/query", "fenec/engine/query/syntax", "fenec/engine/index", "fenec/engine/index/hnsw", "fenec/engine/index/text", "fenec/engine/wal",
		"fenec/engine/doc", "fenec/engine/collation", "fenec/engine/vector", "fenec/engine/fail", "fenec/internal/vfs",
	},
	"fenec/engine/derived": {
		"fenec/engine/index", "fenec/engine/index/hnsw", "fenec/engine/index/text", "fenec/engine/doc", "fenec/engine/collation", "fenec/engine/vector", "fenec/engine/fail",
	},
	"fenec/engine/query": {
		"fenec/engine/query/syntax", "fenec/engine/index", "fenec/engine/index/hnsw", "fenec/engine/index/text", "fenec/engine/doc", "fenec/engine/collation", "fenec/engine/vector", "fenec/engine/fail",
	},
	"fenec/engine/query/syntax":  {"fenec/engine/doc", "fenec/engine/collation", "fenec/engine/vector", "fenec/engine/fail"},
	"fenec/engine/index":         {"fenec/engine/doc", "fenec/engine/collation", "fenec/engine/vector", "fenec/engine/fail"},
	"fenec/engine/index/hnsw":    {"fenec/engine/index", "fenec/engine/vector", "fenec/engine/fail"},
	"fenec/engine/index/text":    {"fenec/engine/index", "fenec/engine/fail"},
	"fenec/engine/wal":           {"fenec/engine/fail", "fenec/internal/vfs"},
	"fenec/engine/doc":           {"fenec/engine/collation", "fenec/engine/vector", "fenec/engine/fail"},
	"fenec/engine/collation":     {},
	"fenec/engine/vector":        {},
	"fenec/engine/fail":          {},
	"fenec/client":               {},
	"fenec/internal/edge":        {"fenec/internal/http1"},
	"fenec/internal/http1":       {"fenec/engine/fail"},
	"fenec/internal/vfs":         {},
	"fenec/internal/random":      {},
	"fenec/internal/vfs/crashfs": {"fenec/internal/vfs"},
	"fenec/internal/simnet":      {},
	"fenec/internal/importer":    {"fenec/client"},
	"fenec/internal/tail":        {"fenec/client"},
	"fenec/router/directory": {
		"fenec/engine", "fenec/engine/doc", "fenec/engine/fail", "fenec/engine/feed", "fenec/engine/wal", "fenec/internal/vfs",
	},
	"fenec/internal/sim": {"fenec/node", "fenec/router", "fenec/engine/wal"},
	"fenec/internal/e2e": {
		"fenec/node", "fenec/router", "fenec/engine", "fenec/engine/doc", "fenec/engine/wal", "fenec/internal/vfs",
	},
}

// testsMayImport is what tests may import beside that: those of the client run a node to be clients of, those of the binary
// are clients.
var testsMayImport = map[string][]string{"fenec/router": {"fenec/engine/wal"}, "fenec/client": {"fenec/node"}, "fenec/internal/e2e": {"fenec/client"}}

// onlyIn names what few packages may know.
var onlyIn = map[string]func(pkg string) bool{
	"github.com/urfave/cli/v2": func(pkg string) bool { return pkg == "fenec/internal/command" },
	"net/http": func(pkg string) bool {
		return pkg != "fenec/engine" && !strings.HasPrefix(pkg, "fenec/engine/") && pkg != "fenec/router/directory"
	},
	"github.com/cockroachdb/datadriven": func(string) bool { return false },
	"testing":                           func(string) bool { return false },
}

// pkg is what `go list` tells of a package.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, edge := range forbidden(p) {
			t.Error(edge)
		}
	}
}

// TestTheArchitecturePageHasEveryPackage compares the table of docs/architecture.md with the packages there are: each is in
// one row, and imports only those of its own row and of rows below.
func TestTheArchitecturePageHasEveryPackage(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(string(page))
	packages := listPackages(t)
	for _, p := range packages {
		row, ok := rows[p.ImportPath]
		if !ok {
			t.Errorf("docs/architecture.md has no row for %s", p.ImportPath)
		}
		delete(rows, p.ImportPath)
		for _, to := range p.Imports {
			if below, ok := rowsOf(string(page))[to]; ok && below < row {
				t.Errorf("docs/architecture.md has %s above %s, which imports it", to, p.ImportPath)
			}
		}
	}
	for name := range rows {
		t.Errorf("docs/architecture.md has a row for %s, which is no package", name)
	}
}

// rowsOf returns the row of each package in the table of a page.
func rowsOf(page string) map[string]int {
	rows := map[string]int{}
	_, table, _ := strings.Cut(page, "| folder | contents |")
	table, _, _ = strings.Cut(table, "\n\n")
	for i, line := range strings.Split(table, "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, name := range strings.Split(cell, ",") {
			if name = strings.Trim(name, " `"); name != "" && !strings.HasPrefix(name, "-") {
				rows[path.Join("fenec", name)] = i
			}
		}
	}
	return rows
}

func TestTheLayoutTestNamesAForbiddenEdge(t *testing.T) {
	for name, c := range map[string]struct {
		pkg  pkg
		want string
	}{
		"a node that imports the router": {
			pkg{ImportPath: "fenec/node", Imports: []string{"fenec/router"}},
			"fenec/node imports fenec/router",
		},
		"an engine that knows HTTP": {
			pkg{ImportPath: "fenec/engine", Imports: []string{"net/http"}},
			"fenec/engine imports net/http",
		},
		"a part of the engine that knows the connection loop": {
			pkg{ImportPath: "fenec/engine/wal", Imports: []string{"fenec/internal/http1"}},
			"fenec/engine/wal imports fenec/internal/http1",
		},
		"a test that reaches up": {
			pkg{ImportPath: "fenec/engine", XTestImports: []string{"fenec/node"}},
			"fenec/engine imports fenec/node",
		},
		"a client that knows what serves it": {
			pkg{ImportPath: "fenec/client", Imports: []string{"fenec/node"}},
			"fenec/client imports fenec/node",
		},
		"a second place that knows the command line": {
			pkg{ImportPath: "fenec/node", Imports: []string{"github.com/urfave/cli/v2"}},
			"fenec/node imports github.com/urfave/cli/v2",
		},
		"a room without a rule": {
			pkg{ImportPath: "fenec/corner", Imports: []string{"fenec/engine"}},
			"fenec/corner has no place in the layout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := forbidden(c.pkg)
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("forbidden edges %q, want one that says %q", got, c.want)
			}
		})
	}
}

// forbidden is a sentence for each import of p that the layout does not allow.
func forbidden(p pkg) []string {
	rule, ok := nearestRule(p.ImportPath)
	if !ok {
		return []string{p.ImportPath + " has no place in the layout: give it a rule in mayImport"}
	}
	var edges []string
	for _, to := range p.Imports {
		if allowed, known := onlyIn[to]; known && !allowed(p.ImportPath) && !isTestRoom(p.ImportPath) {
			edges = append(edges, fmt.Sprintf("%s imports %s, which it must not know", p.ImportPath, to))
		}
		if isOurs(to) && !slices.Contains(mayImport[rule], to) && !inRoom(to, rule) {
			edges = append(edges, fmt.Sprintf("%s imports %s, which points the wrong way", p.ImportPath, to))
		}
	}
	for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
		if isOurs(to) && !slices.Contains(mayImport[rule], to) && !slices.Contains(testsMayImport[rule], to) && !isTestRoom(to) && !inRoom(to, rule) {
			edges = append(edges, fmt.Sprintf("a test of %s imports %s, which points the wrong way", p.ImportPath, to))
		}
	}
	return edges
}

// nearestRule is the listed package that path is or is inside of.
func nearestRule(path string) (string, bool) {
	for at := path; at != ""; {
		if _, ok := mayImport[at]; ok && (at != "fenec" || path == "fenec") {
			return at, true
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	return "", false
}

// inRoom says that path is the package that rule is for, or inside of it without
// a rule of its own.
func inRoom(path, rule string) bool {
	nearest, ok := nearestRule(path)
	return ok && nearest == rule
}

func isOurs(path string) bool { return path == "fenec" || strings.HasPrefix(path, "fenec/") }

// isTestRoom says that a package is there for tests alone.
func isTestRoom(path string) bool {
	return path == "fenec/internal/vfs/crashfs" || path == "fenec/internal/simnet"
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	var stderr bytes.Buffer
	list := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 10 {
		t.Fatalf("go list names %d packages, want at least the ten of the layout", len(packages))
	}
	return packages
}

// makesScopes names, by server, the declaration that may make a scope: what a request may do is decided in one place.
var makesScopes = map[string]string{"node": "scopeOf", "router": "everything"}

func TestTheLayoutMakesScopesInOnePlace(t *testing.T) {
	for dir, allowed := range makesScopes {
		made := false
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if !makesScope(d) {
					continue
				}
				if name := declared(d); name != allowed {
					t.Errorf("%s: %s makes a scope, want only %s", path, name, allowed)
				}
				made = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !made {
			t.Errorf("%s: %s makes no scope: take it off the list", dir, allowed)
		}
	}
}

// declared is the name of a function or of the first variable of a declaration.
func declared(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return "a declaration"
}

// makesScope reports whether a declaration makes an engine.Scope that permits something.
func makesScope(d ast.Decl) (makes bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			of, _ := s.X.(*ast.Ident)
			makes = makes || of != nil && of.Name == "engine" && s.Sel.Name == "Everything"
		}
		return true
	})
	return makes
}
