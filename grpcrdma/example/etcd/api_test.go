package etcd

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// over runs a body over every form, each with a member of its own.
func over(t *testing.T, body func(t *testing.T, c api)) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			e, tcp := member(t)
			body(t, f.connect(t, e, tcp))
		})
	}
}

func TestKeysArePutAndFound(t *testing.T) {
	over(t, func(t *testing.T, c api) {
		ctx := soon(t)
		for _, k := range []string{"a/2", "a/1", "b/1"} {
			_, err := c.Put(ctx, k, "of "+k)
			must(t, err)
		}
		long := bytes.Repeat([]byte("x"), 1<<20) // beyond one record, and placed by fused
		_, err := c.Put(ctx, "long", string(long))
		must(t, err)
		got, err := c.Get(ctx, "long")
		must(t, err)
		if len(got.Kvs) != 1 || !bytes.Equal(got.Kvs[0].Value, long) {
			t.Errorf("the long value came back as %d keys", len(got.Kvs))
		}
		got, err = c.Get(ctx, "a/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
		must(t, err)
		if len(got.Kvs) != 2 || string(got.Kvs[0].Key) != "a/1" || string(got.Kvs[1].Value) != "of a/2" {
			t.Errorf("range: %v", got.Kvs)
		}
		gone, err := c.KV.Delete(ctx, "a/", clientv3.WithPrefix(), clientv3.WithPrevKV())
		must(t, err)
		if gone.Deleted != 2 || len(gone.PrevKvs) != 2 {
			t.Errorf("deleted %d, %v", gone.Deleted, gone.PrevKvs)
		}
	})
}

func TestTransactionsChooseABranch(t *testing.T) {
	over(t, func(t *testing.T, c api) {
		for i, want := range []bool{true, false} {
			r, err := c.Txn(soon(t)).If(clientv3.Compare(clientv3.CreateRevision("lock"), "=", 0)).
				Then(clientv3.OpPut("lock", "mine")).Else(clientv3.OpGet("lock")).Commit()
			must(t, err)
			if r.Succeeded != want || len(r.Responses) != 1 {
				t.Errorf("transaction %d: %+v", i, r)
			}
			if kvs := r.Responses[0].GetResponseRange().GetKvs(); !want && (len(kvs) != 1 || string(kvs[0].Value) != "mine") {
				t.Errorf("the other branch found %v", kvs)
			}
		}
	})
}

func TestWatchesTellWhatHappens(t *testing.T) {
	over(t, func(t *testing.T, c api) {
		ctx := soon(t)
		first, err := c.Put(ctx, "w/0", "before")
		must(t, err)
		w := c.Watch(ctx, "w/", clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision), clientv3.WithPrevKV())
		_, err = c.Put(ctx, "w/1", "live")
		must(t, err)
		_, err = c.KV.Delete(ctx, "w/0")
		must(t, err)
		var seen []*clientv3.Event
		for len(seen) < 3 {
			r, ok := <-w
			if !ok || r.Err() != nil {
				t.Fatalf("the watch ended behind %d events: %v", len(seen), r.Err())
			}
			seen = append(seen, r.Events...)
		}
		if string(seen[0].Kv.Key) != "w/0" || string(seen[1].Kv.Value) != "live" ||
			seen[2].Type != mvccpb.Event_DELETE || string(seen[2].PrevKv.Value) != "before" {
			t.Errorf("events %v", seen)
		}
	})
}

// What a lease carries lives as long as it is kept alive, and is told of when it goes.
func TestLeasesEndWithWhatTheyCarry(t *testing.T) {
	over(t, func(t *testing.T, c api) {
		ctx := soon(t)
		kept, err := c.Grant(ctx, 60)
		must(t, err)
		alive, err := c.KeepAlive(ctx, kept.ID)
		must(t, err)
		short, err := c.Grant(ctx, 1)
		must(t, err)
		for k, id := range map[string]clientv3.LeaseID{"l/kept": kept.ID, "l/short": short.ID} {
			_, err := c.Put(ctx, k, "v", clientv3.WithLease(id))
			must(t, err)
		}
		w := c.Watch(ctx, "l/", clientv3.WithPrefix())
		if a, ok := <-alive; !ok || a.TTL != 60 {
			t.Errorf("kept alive: %v, %v", a, ok)
		}
		expect := func(key string) {
			t.Helper()
			r := <-w
			if len(r.Events) != 1 || r.Events[0].Type != mvccpb.Event_DELETE || string(r.Events[0].Kv.Key) != key {
				t.Errorf("want the end of %s, got %v, %v", key, r.Events, r.Err())
			}
		}
		expect("l/short") // by itself
		_, err = c.Revoke(ctx, kept.ID)
		must(t, err)
		expect("l/kept")
		ttl, err := c.TimeToLive(ctx, kept.ID)
		if err == nil && ttl.TTL != -1 {
			t.Errorf("the revoked lease has %d s", ttl.TTL)
		}
	})
}

func TestErrorsAreEtcds(t *testing.T) {
	over(t, func(t *testing.T, c api) {
		ctx := soon(t)
		var last int64
		for range 3 {
			r, err := c.Put(ctx, "k", "v")
			must(t, err)
			last = r.Header.Revision
		}
		_, err := c.Compact(ctx, last)
		must(t, err)
		if _, err := c.Get(ctx, "k", clientv3.WithRev(last-1)); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("a compacted revision: %v", err)
		}
		if r := <-c.Watch(ctx, "k", clientv3.WithRev(1)); !r.Canceled || r.CompactRevision != last ||
			!errors.Is(r.Err(), rpctypes.ErrCompacted) {
			t.Errorf("a watch of it: %+v", r)
		}
		if _, err := c.Put(ctx, "k", "v", clientv3.WithLease(12345)); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("a lease that is not there: %v", err)
		}
		if _, err := c.Put(ctx, "", "v"); !errors.Is(err, rpctypes.ErrEmptyKey) {
			t.Errorf("an empty key: %v", err)
		}
		if _, err := c.Get(ctx, "k", clientv3.WithRev(last+1000)); !errors.Is(err, rpctypes.ErrFutureRev) {
			t.Errorf("a future revision: %v", err)
		}
	})
}

func TestWatchesEnd(t *testing.T) {
	over(t, func(t *testing.T, c api) {
		ctx, cancel := context.WithCancel(soon(t))
		w := c.Watch(ctx, "quiet", clientv3.WithCreatedNotify())
		if r := <-w; !r.Created {
			t.Errorf("first %+v", r)
		}
		cancel()
		select {
		case r, ok := <-w:
			if ok && r.Err() == nil {
				t.Errorf("an ended watch says %+v", r)
			}
		case <-time.After(long):
			t.Error("it did not end")
		}
	})
}
