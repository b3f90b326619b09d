package main

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
Reads a tenant's file from end to end, changes nothing, and says what is in it and
what is damaged. It exits 0 where the file is sound; a record cut short at the very
end is what a crash leaves behind, and the next open cuts it off.

With --salvage, what can be read of a damaged file is written to a new one, which
then opens as any other:

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
		return usagef("fenec check wants one file, got %d", c.Args().Len())
	}
	path, salvage := c.Args().First(), c.String("salvage")
	report, err := engine.Check(vfs.OS, path, salvage)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("--salvage wants a new file, and there is %s already", salvage)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be checked: %s", path, plain(err))
	}
	printReport(c.App.Writer, path, report)
	if salvage != "" {
		fmt.Fprintf(c.App.Writer, "what can be read of it is in %s\n", salvage)
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
		fmt.Fprintf(w, "  %d documents can be read, but not what collection they were in\n", r.Lost)
	}
	if r.Torn > 0 {
		fmt.Fprintf(w, "  the last %d bytes are a record cut short, which the next open cuts off\n", r.Torn)
	}
}
