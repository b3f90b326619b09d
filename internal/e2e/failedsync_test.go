package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// thinVolume is an ext4 volume on a loop device whose backing file is on a small tmpfs: as that is full, what is written
// to the volume is lost in the background and its next sync fails. It is mounted in a mount namespace of its own.
type thinVolume struct {
	holder *exec.Cmd
	dir    string // where it is mounted, in the namespace
	room   string // the tmpfs
}

// newThinVolume answers why there can be none here, where that is so.
func newThinVolume(t *testing.T) (*thinVolume, error) {
	t.Helper()
	base := t.TempDir()
	v := &thinVolume{dir: filepath.Join(base, "volume"), room: filepath.Join(base, "room")}
	for _, dir := range []string{v.dir, v.room} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`set -e
mount -t tmpfs -o size=24m tmpfs %[1]s
truncate -s 256M %[1]s/disk
device=$(losetup --find --show %[1]s/disk)
trap 'umount -l %[2]s; losetup --detach '$device EXIT
mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=0,nodiscard -N 64 $device
mount $device %[2]s
echo ready
cat >/dev/null`, v.room, v.dir)
	v.holder = exec.Command("unshare", "-m", "bash", "-c", script)
	var problem strings.Builder
	v.holder.Stderr = &problem
	in, err := v.holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := v.holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.holder.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() { // after the processes in it have ended
		in.Close()
		ended(v.holder)
	})
	timer := time.AfterFunc(patience, func() { v.holder.Process.Kill() })
	defer timer.Stop()
	if n, _ := out.Read(make([]byte, 6)); n == 0 {
		return nil, fmt.Errorf("%s", strings.TrimSpace(problem.String()))
	}
	return v, nil
}

// node runs a node on the volume.
func (v *thinVolume) node(t *testing.T, args ...string) *process {
	t.Helper()
	enter := []string{"--mount", "--target", strconv.Itoa(v.holder.Process.Pid), binary(t), "node", "--dir", v.dir, "--http", "127.0.0.1:0", "--admin-token", adminToken}
	return startCommand(t, exec.Command("nsenter", append(enter, args...)...))
}

// path is a path of the namespace as this process sees it.
func (v *thinVolume) path(name string) string {
	return fmt.Sprintf("/proc/%d/root%s", v.holder.Process.Pid, name)
}

// fill takes the room that the volume's device has to grow.
func (v *thinVolume) fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(v.path(v.room + "/filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

func (v *thinVolume) free(t *testing.T) {
	t.Helper()
	if err := os.Remove(v.path(v.room + "/filler")); err != nil {
		t.Fatal(err)
	}
}

// dropCache has the pages of a tenant's file that are taken for written read from the device again.
func (v *thinVolume) dropCache(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(v.path(v.dir + "/" + name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// handedOut are the numbers of the rows that /_changes has handed out.
func handedOut(t *testing.T, tenant string) (all []int) {
	t.Helper()
	body := must(t, 200, "GET", tenant+"/_changes?since=0&limit=10000", "")
	for line := range strings.Lines(body) {
		var change struct {
			Op  string
			Doc struct{ N int }
		}
		if err := json.Unmarshal([]byte(line), &change); err != nil {
			t.Fatal(err)
		}
		if change.Op == "put" {
			all = append(all, change.Doc.N)
		}
	}
	return all
}

// TestASyncThatFailedOnARealVolume has a volume run full under a node, whose sync in the background fails; there is room
// again, and the tenant is closed as idle or the node killed, written to again and read from the device. What was handed
// out as on disk is there, and what was written since. The same on a file system in memory, at every sync and in every
// order, is engine/wal's TestASyncThatFailedIsNotTakenForAGoodOneLater and engine's TestAPositionNeverNamesTwoStates.
func TestASyncThatFailedOnARealVolume(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"250", "always"} {
		for _, end := range []string{"closed as idle", "killed"} {
			t.Run("sync "+sync+", "+end, func(t *testing.T) {
				v, err := newThinVolume(t)
				if err != nil {
					t.Logf("no loop device can be had here, so a volume that loses writes was not tried: %v", err)
					return
				}
				failedSync(t, v, sync, end == "killed")
			})
		}
	}
}

func failedSync(t *testing.T, v *thinVolume, sync string, kills bool) {
	args := []string{"--sync", sync, "--idle-close", "1"}
	p := v.node(t, args...)
	tenant := makeTenant(t, p, "acme")
	query(t, tenant, "alter collection writes add field text text")
	n := 0
	text := strings.Repeat("x", 3000)
	write := func() int {
		n++
		a, err := request("POST", tenant+"/writes", fmt.Sprintf(`{"n": %d, "text": %q}`, n, text))
		if err != nil {
			t.Fatal(err)
		}
		return a.status
	}
	for range 50 {
		if status := write(); status != 201 {
			t.Fatalf("a write on a sound volume is answered %d", status)
		}
	}
	eventually(t, "fifty rows are on disk", func() bool { return len(handedOut(t, tenant)) == 50 })

	v.fill(t)
	eventually(t, "a sync has failed", func() bool {
		write()
		return strings.Contains(must(t, 200, "GET", p.url()+"/_metrics", ""), "fenec_storage_failed 1")
	})
	promised := handedOut(t, tenant)
	v.free(t)
	if kills {
		p.kill()
		p = v.node(t, args...)
		tenant = p.url() + "/t/acme"
	} else {
		eventually(t, "the tenant is closed as idle", func() bool {
			return !strings.Contains(must(t, 200, "GET", p.url()+"/_admin/open", ""), "acme")
		})
	}
	for range 3 {
		if status := write(); status != 201 {
			t.Fatalf("with room again a write is answered %d", status)
		}
		promised = append(promised, n)
	}
	eventually(t, "what was written since is on disk", func() bool {
		now := handedOut(t, tenant)
		return len(now) > 0 && now[len(now)-1] == n
	})
	promised = append(promised, handedOut(t, tenant)...)
	p.kill()
	v.dropCache(t, "acme.fenec")
	p = v.node(t, args...)
	got := numbers(t, p.url()+"/t/acme")
	for _, n := range slices.Compact(slices.Sorted(slices.Values(promised))) {
		if got[n] != 1 {
			t.Errorf("row %d was handed out as on disk and is there %d times", n, got[n])
		}
	}
	p.stop()
}
