package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"fenec/engine/fail"
)

func durableRole() error { return nil }

func wantFollows(t *testing.T, db *DB) {
	t.Helper()
	_, err := exec(db, `put c {n: 1}`)
	if fail.KindOf(err) != fail.Follows || !db.Follows() {
		t.Errorf("a write to a copy that follows: %v, and it follows: %v", err, db.Follows())
	}
}

func TestAPromotedCopyWritesAHistoryOfItsOwn(t *testing.T) {
	c := newCopies(t)
	defer c.close()
	mustExec(t, c.leader, `put c {n: 1}`)
	c.catchUp(t)
	_, before := c.follower.Position()
	wantFollows(t, c.follower)
	if _, err := c.follower.Freeze(); fail.KindOf(err) != fail.Conflict {
		t.Errorf("a freeze of a copy that follows: %v, want a conflict", err)
	}
	stored := false
	err := c.follower.Promote(func() error {
		stored = true
		wantFollows(t, c.follower) // not before the role is on disk
		if forks := c.follower.Forks(c.leader.history.Term); len(forks) != 1 {
			t.Errorf("before the role is stored there are %d forks, want 1", len(forks))
		}
		return nil
	})
	if err != nil || !stored || c.follower.Follows() {
		t.Fatalf("promoting: %v, stored %v, still follows %v", err, stored, c.follower.Follows())
	}
	seq, history := c.follower.Position()
	mustExec(t, c.follower, `put c {n: 2}`)
	if after, now := c.follower.Position(); now != history || history == before || after != seq+1 {
		t.Errorf("the copy is at change %d of %s, want %d of %s, which is not %s", after, now, seq+1, history, before)
	}
	if err := c.follower.Promote(durableRole); fail.KindOf(err) != fail.Conflict {
		t.Errorf("promoting a copy that accepts writes: %v, want a conflict", err)
	}
	// The old leader, which has written nothing since, follows the new one.
	if err := c.leader.Demote(durableRole); err != nil {
		t.Fatal(err)
	}
	wantFollows(t, c.leader)
	forks := c.follower.Forks(c.leader.history.Term)
	if err := c.leader.Follow(context.Background(), forks[0].Record); err != nil {
		t.Fatal(err)
	}
	if _, now := c.leader.Position(); now != history {
		t.Errorf("the old leader is in history %s, want %s", now, history)
	}
}

func TestARoleThatCannotBeStoredDoesNotChange(t *testing.T) {
	c := newCopies(t)
	defer c.close()
	broken := errors.New("the disk is gone")
	if err := c.follower.Promote(func() error { return broken }); !errors.Is(err, broken) || !c.follower.Follows() {
		t.Errorf("promoting: %v, and it follows: %v", err, c.follower.Follows())
	}
	wantFollows(t, c.follower)
	err := c.leader.Demote(func() error {
		wantFollows(t, c.leader)
		return broken
	})
	if !errors.Is(err, broken) || c.leader.Follows() {
		t.Errorf("demoting: %v, and it follows: %v", err, c.leader.Follows())
	}
	mustExec(t, c.leader, `put c {n: 1}`)
}

func TestAWaitingClaimIsWokenByADemotion(t *testing.T) {
	db := inMemory(t, Options{})
	mustExec(t, db, `create collection c (n int)`)
	claim, _, err := db.Claim(Everything(), statements1(`set c {n: 2} where n = 1 limit 1`))
	if err != nil {
		t.Fatal(err)
	}
	woken := 0
	watch := db.Watch(claim, func(time.Time, bool) { woken++ })
	defer watch.Close()
	before := woken
	if err := db.Demote(durableRole); err != nil {
		t.Fatal(err)
	}
	if woken == before {
		t.Error("the claim was not woken")
	}
}

func TestCopiesFindTheirLastCommonChange(t *testing.T) {
	c := newCopies(t)
	defer c.close()
	mustExec(t, c.leader, `put c {n: 1}`)
	c.catchUp(t)
	shared, _ := c.follower.Position()
	mustExec(t, c.leader, `put c {n: 2}`) // is never sent
	if err := c.follower.Promote(durableRole); err != nil {
		t.Fatal(err)
	}
	mustExec(t, c.follower, `put c {n: 3}`)
	mustExec(t, c.follower, `put c {n: 4}`)
	for name, pair := range map[string][2]*DB{"the old leader": {c.leader, c.follower}, "the new one": {c.follower, c.leader}} {
		if seq, ok := pair[0].Common(pair[1].Branches(10)); !ok || seq != shared {
			t.Errorf("%s: the last common change is %d, %v, want %d", name, seq, ok, shared)
		}
	}
	other := inMemory(t, Options{})
	if _, ok := c.leader.Common(other.Branches(10)); ok {
		t.Error("a database of another lineage has a change in common")
	}
	if seq, ok := c.leader.Common([]Branch{{"no history", 1}}); ok {
		t.Errorf("a branch that is no history has change %d in common", seq)
	}
}
