// Command fenec is a document database split by tenant. Each tenant is one file, a
// node serves a directory of them, and a router records which node holds which.
package main

import (
	"os"

	"fenec/internal/command"
)

// version is returned by `fenec version` and GET /. The linker may override it.
var version = "0.1.0"

func main() {
	os.Exit(command.Main(version, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
