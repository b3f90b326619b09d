package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"fenec/engine"
	"fenec/internal/vfs"
)

const checkHelp = `
Reads a tenant's file from end to end without changing it, and prints what is in it
and what is damaged. It exits with 0 if the file is intact. An incomplete record at
the very end is left by a crash and is no damage: the next open truncates it.

With --salvage, what can be read of a damaged file is written to a new one, which
opens like any other:

  fenec check acme.fenec --salvage acme-saved.fenec
`

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:        "check",
		Usage:       "Check a tenant's file, and save what can be read of a damaged one",
		ArgsUsage:   "FILE",
		Description: checkHelp,
		Flags:       []cli.Flag{value("salvage", "", "Write what can be read to this new `FILE`.")},
		Action:      runCheck,
	}
}

func runCheck(c *cli.Context) error {
	if c.Args().Len() != 1 {
		return usagef("fenec check: expected one file, got %d", c.Args().Len())
	}
	path, salvage := c.Args().First(), c.String("salvage")
	report, err := engine.Check(vfs.OS, path, salvage)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("--salvage: expected a new file, but %s exists", salvage)
	}
	if err != nil {
		return fmt.Errorf("check %s: %s", path, plain(err))
	}
	printReport(c.App.Writer, path, report)
	if salvage != "" {
		fmt.Fprintf(c.App.Writer, "wrote what can be read to %s\n", salvage)
	}
	if !report.Sound() {
		return errors.New(path + " is damaged")
	}
	return nil
}

func printReport(w io.Writer, path string, r engine.Report) {
	fmt.Fprintf(w, "%s: %d bytes, %d records, change %d\n", path, r.Size, r.Records, r.Seq)
	for _, c := range r.Collections {
		fmt.Fprintf(w, "  %s: %d documents\n", c.Schema.Name, c.Documents)
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "  damaged: %d bytes at offset %d: %s\n", d.Length, d.Offset, plain(d.Err))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  wrong: %s\n", p)
	}
	if r.Lost > 0 {
		fmt.Fprintf(w, "  %d documents can be read, but their collection is unknown\n", r.Lost)
	}
	if r.Torn > 0 {
		fmt.Fprintf(w, "  the last %d bytes are an incomplete record, which the next open truncates\n", r.Torn)
	}
}
