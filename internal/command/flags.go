package command

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fenec/engine/wal"
)

// usageError is a wrong flag, argument or configuration: exit code 2.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

const envPrefix = "FENEC_"

// envName returns the environment variable of a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// unsetEmpty unsets the environment variables of flags that are empty: FENEC_HTTP=
// in a compose file means the default, but the flag parser would use the empty text
// as the address.
func unsetEmpty() {
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if value == "" && strings.HasPrefix(name, envPrefix) {
			os.Unsetenv(name)
		}
	}
}

// value returns a flag with a value. The flag parser reads it as text and settings
// converts it, so that settings writes every error message.
func value(name, fallback, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: fallback, Usage: usage, EnvVars: []string{envName(name)}}
}

func boolean(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: []string{envName(name)}}
}

// secret returns the two flags of a token: the token itself, and a file to read it
// from, which keeps it out of the list of processes.
func secret(name, usage string) []cli.Flag {
	return []cli.Flag{
		value(name, "", usage),
		value(name+"-file", "", "The same, read from a `FILE`."),
	}
}

// settings reads a command's flags. err is the error of the first invalid one;
// invalid flags are read as zero values.
type settings struct {
	c   *cli.Context
	err error
}

func (s *settings) refuse(name, wanted string) {
	if s.err == nil {
		s.err = usagef("--%s: expected %s, got %q", name, wanted, s.c.String(name))
	}
}

func (s *settings) text(name string) string { return s.c.String(name) }

func (s *settings) boolean(name string) bool { return s.c.Bool(name) }

// duration reads a duration such as 90s, or a number of seconds.
func (s *settings) duration(name string) time.Duration {
	text := s.c.String(name)
	if text == "" {
		return 0
	}
	d, err := parseDuration(text)
	if err != nil || d < 0 {
		s.refuse(name, "seconds or a duration such as 90s or 5m")
		return 0
	}
	return d
}

// wait reads a duration that is above zero.
func (s *settings) wait(name string) time.Duration {
	d := s.duration(name)
	if d == 0 {
		s.refuse(name, "a time above zero")
	}
	return d
}

// milliseconds reads a whole number of milliseconds.
func (s *settings) milliseconds(name string) time.Duration {
	const most = 1 << 40 // over thirty years: more is a mistake
	n := s.count(name, 0)
	if n > most {
		s.refuse(name, "a number of milliseconds")
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// address reads an address to listen on.
func (s *settings) address(name string) string {
	text := s.c.String(name)
	_, port, err := net.SplitHostPort(text)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		s.refuse(name, "an address such as 127.0.0.1:8090")
	}
	return text
}

func parseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		const most = float64(1<<63-1) / float64(time.Second)
		if !(seconds >= 0 && seconds < most) {
			return 0, strconv.ErrRange
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return time.ParseDuration(text)
}

// count reads a number that is at least least.
func (s *settings) count(name string, least int) int {
	text := s.c.String(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		s.refuse(name, fmt.Sprintf("a whole number of at least %d", least))
		return 0
	}
	return n
}

// mebibytes reads a number of MiB and returns bytes.
func (s *settings) mebibytes(name string) int64 {
	const most = 1 << 32 // 4 PiB: more is a mistake
	n := s.count(name, 0)
	if n > most {
		s.refuse(name, "a number of MiB")
		return 0
	}
	return int64(n) << 20
}

// buffer reads a number of MiB, at least one, and returns bytes.
func (s *settings) buffer(name string) int64 {
	n := s.mebibytes(name)
	if n == 0 {
		s.refuse(name, "a number of MiB, at least 1")
	}
	return n
}

// share reads a number from 0 to below 1.
func (s *settings) share(name string) float64 {
	share, err := strconv.ParseFloat(s.c.String(name), 64)
	if err != nil || !(share >= 0 && share < 1) {
		s.refuse(name, "a number from 0 to below 1, such as 0.5")
		return 0
	}
	return share
}

func (s *settings) sync(name string) wal.Policy {
	policy, err := wal.ParsePolicy(s.c.String(name))
	if err != nil {
		s.refuse(name, "always, off, or the milliseconds a crash may lose, such as 250")
	}
	return policy
}

// secret reads a token from its flag or its file.
func (s *settings) secret(name string) string {
	token, file := s.c.String(name), s.c.String(name+"-file")
	switch {
	case s.err != nil || file == "":
		return token
	case token != "":
		s.err = usagef("--%s and --%s-file are both given; give one of the two", name, name)
		return ""
	}
	content, err := os.ReadFile(file)
	if err != nil {
		s.err = usagef("--%s-file cannot be read: %s", name, plain(err))
		return ""
	}
	token = strings.TrimSpace(string(content))
	if token == "" {
		s.err = usagef("--%s-file names an empty file: %s", name, file)
	}
	return token
}

// noArguments returns an error if a command has arguments that are not flags.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("fenec %s takes flags only, got %q", c.Command.Name, c.Args().First())
	}
	return nil
}

// The errors of the flag parser.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
	badSwitch   = regexp.MustCompile(`^invalid boolean value "(.*)" for -+(\S+): `)
	badEnv      = regexp.MustCompile(`^could not parse "(.*)" as bool value from environment variable "(\w+)"`)
)

// onUsageError converts an error of the flag parser into a plain sentence.
func onUsageError(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	command, help := "fenec", "fenec help lists the commands"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != "fenec" {
		command += " " + c.Command.Name
		help = "fenec help " + c.Command.Name + " lists them"
	}
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return usagef("%s has no flag --%s; %s", command, m[1], help)
	}
	if m := noValue.FindStringSubmatch(text); m != nil {
		return usagef("--%s: expected a value", m[1])
	}
	if m := badSwitch.FindStringSubmatch(text); m != nil {
		return usagef("--%s: expected true or false, got %q", m[2], m[1])
	}
	if m := badEnv.FindStringSubmatch(text); m != nil {
		return usagef("%s: expected true or false, got %q", m[2], m[1])
	}
	return usagef("%s", text)
}
