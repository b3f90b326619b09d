package command

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

func TestEveryFlagHasItsEnvironmentVariableAndAText(t *testing.T) {
	for _, c := range newApp(nil, io.Discard, io.Discard).Commands {
		for _, f := range c.Flags {
			name := f.Names()[0]
			var env []string
			var usage string
			switch f := f.(type) {
			case *cli.StringFlag:
				env, usage = f.EnvVars, f.Usage
			case *cli.BoolFlag:
				env, usage = f.EnvVars, f.Usage
			default:
				t.Errorf("fenec %s --%s is a %T, which settings does not read", c.Name, name, f)
			}
			want := "FENEC_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if !slices.Equal(env, []string{want}) {
				t.Errorf("fenec %s --%s is set by %v, want %s", c.Name, name, env, want)
			}
			if !strings.HasSuffix(usage, ".") {
				t.Errorf("fenec %s --%s is explained by %q, want a sentence", c.Name, name, usage)
			}
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "0.25": 250 * time.Millisecond, "300ms": 300 * time.Millisecond,
		"1m30s": 90 * time.Second, "1e2": 100 * time.Second,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "5 s", "NaN", "Inf", "-1", "1e10", "5d"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}

func TestFlagsMayStandBehindArguments(t *testing.T) {
	command := importCommand()
	for _, c := range []struct{ args, want string }{
		{"file --url u --create", "--url u --create -- file"},
		{"--create file --url=u -", "--create --url=u -- file -"},
		{"--url u", "--url u"},
		{"--strict -- --url u", "--strict -- --url u"},
		{"file --url", "--url -- file"},
	} {
		got := strings.Join(flagsFirst(command, strings.Fields(c.args)), " ")
		if got != c.want {
			t.Errorf("%s became %s, want %s", c.args, got, c.want)
		}
	}
}

func TestTheHelpOfACommandIsOneText(t *testing.T) {
	for _, name := range []string{"up", "node", "shard", "import", "check", "ping", "standby", "version"} {
		var out, stderr bytes.Buffer
		if code := run([]string{"fenec", "help", name}, nil, &out, &stderr); code != exitOK || stderr.Len() > 0 {
			t.Errorf("fenec help %s: exit code %d, %s", name, code, stderr.String())
		}
		if !strings.HasPrefix(out.String(), "fenec "+name+": ") {
			t.Errorf("fenec help %s begins with %.40q", name, out.String())
		}
	}
}
