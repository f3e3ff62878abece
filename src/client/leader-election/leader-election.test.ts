import t, { type Test } from "tap";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { StatusError } from "../../api/status.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { Client } from "../client.ts";
import { type LeaderElection, startLeaderElection } from "./leader-election.ts";

/** A server that has one lease. */
class LeaseServer {
  lease: Lease | undefined;
  /** Requests of these instances fail. */
  readonly unreachable = new Set<string>();
  #revision = 0;

  clientOf(identity: string): Client {
    const reach = (): void => {
      if (this.unreachable.has(identity)) throw new Error("connection refused");
    };
    const store = (lease: Lease): Lease => {
      this.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.#revision) } };
      return this.lease;
    };
    const client: Partial<Client> = {
      get: async () => {
        reach();
        if (this.lease === undefined) throw new StatusError(404, "NotFound", "not found");
        return this.lease as never;
      },
      create: async (_kind, object) => {
        reach();
        if (this.lease !== undefined) throw new StatusError(409, "AlreadyExists", "exists");
        return store(object as Lease) as never;
      },
      update: async (_kind, object) => {
        reach();
        if (object.metadata?.resourceVersion !== this.lease?.metadata?.resourceVersion) {
          throw new StatusError(409, "Conflict", "changed");
        }
        return store(object as Lease) as never;
      },
    };
    return client as Client;
  }
}

interface Instance {
  readonly election: LeaderElection;
  readonly stop: AbortController;
  readonly events: readonly string[];
  readonly leaders: readonly string[];
  lead: AbortSignal | undefined;
}

function startInstance(t: Pick<Test, "teardown">, server: LeaseServer, clock: FakeClock, identity: string): Instance {
  const stop = new AbortController();
  const [events, leaders]: [string[], string[]] = [[], []];
  const election = startLeaderElection(
    {
      client: server.clientOf(identity),
      clock,
      random: seededRandom(identity.length),
      log: silentLogger,
      recorder: { record: ({ name }, _type, reason, message) => void events.push(`${name} ${reason}: ${message}`) },
      namespace: "kube-system",
      name: "manager",
      identity,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      onNewLeader: (leader) => void leaders.push(leader),
    },
    stop.signal,
  );
  t.teardown(() => stop.abort());
  const instance: Instance = { election, stop, events, leaders, lead: undefined };
  election.elected.then(
    (lead) => {
      instance.lead = lead;
    },
    () => {},
  );
  return instance;
}

async function pass(clock: FakeClock, seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds * 10; passed++) {
    await clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

t.test("one instance leads and renews the lease; another takes it when that was killed", async (t) => {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  const first = startInstance(t, server, clock, "first");
  await pass(clock, 1);
  const second = startInstance(t, server, clock, "second");
  await pass(clock, 60);
  t.ok(first.election.isLeader);
  t.notOk(second.election.isLeader);
  t.same(first.events, ["manager LeaderElection: first became leader"]);
  t.same(second.leaders, ["first"]);
  t.doesNotThrow(() => first.election.checkLease(0));
  t.match(server.lease?.spec, { holderIdentity: "first", leaseDurationSeconds: 15, leaseTransitions: 0 });
  first.stop.abort();
  await pass(clock, 12);
  t.notOk(second.election.isLeader, "the lease is valid");
  await pass(clock, 8);
  t.ok(second.election.isLeader, "within the duration of the lease and one retry");
  t.match(server.lease?.spec, { holderIdentity: "second", leaseTransitions: 1 });
});

t.test("a leader that cannot renew stops before another one starts", async (t) => {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  const first = startInstance(t, server, clock, "first");
  await pass(clock, 1);
  const second = startInstance(t, server, clock, "second");
  await pass(clock, 10);
  server.unreachable.add("first");
  let [stoppedAfter, startedAfter] = [0, 0];
  for (let seconds = 1; seconds <= 30; seconds++) {
    await pass(clock, 1);
    if (stoppedAfter === 0 && first.lead?.aborted === true) stoppedAfter = seconds;
    if (startedAfter === 0 && second.lead !== undefined) startedAfter = seconds;
  }
  t.ok(stoppedAfter > 8 && stoppedAfter <= 13, `stopped after ${stoppedAfter} s`);
  t.ok(startedAfter > stoppedAfter && startedAfter <= 22, `the other one started after ${startedAfter} s`);
  t.same(first.events[1], "manager LeaderElection: first stopped leading");
  t.notOk(first.election.isLeader);
});

t.test("a released lease is taken at the next retry", async (t) => {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  const first = startInstance(t, server, clock, "first");
  await pass(clock, 1);
  const second = startInstance(t, server, clock, "second");
  await pass(clock, 5);
  first.stop.abort();
  await first.election.release();
  t.equal(server.lease?.spec?.holderIdentity, "");
  await pass(clock, 5);
  t.ok(second.election.isLeader);
});

t.test("a leader survives short failures, conflicts and jumps of the host's clock", async (t) => {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  const first = startInstance(t, server, clock, "first");
  await pass(clock, 5);
  server.unreachable.add("first");
  await pass(clock, 6);
  server.unreachable.clear();
  await pass(clock, 5);
  t.ok(first.election.isLeader, "the server was away for 6 s");
  // Another client adds a label.
  const client = server.clientOf("other");
  await client.update(leaseKind, { ...server.lease, metadata: { ...server.lease?.metadata, labels: { a: "b" } } });
  await pass(clock, 10);
  t.ok(first.election.isLeader, "the lease was changed");
  t.equal(server.lease?.metadata?.labels?.a, "b");
});

t.test("a lease in other hands makes the leader stop; checkLease() reports a lease that is not renewed", async (t) => {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  const first = startInstance(t, server, clock, "first");
  await pass(clock, 5);
  server.lease = {
    ...server.lease,
    metadata: { ...server.lease?.metadata, resourceVersion: "77" },
    spec: { holderIdentity: "thief" },
  };
  await pass(clock, 15);
  t.equal(first.lead?.aborted, true);
  t.notOk(first.election.isLeader);
  const alone = startInstance(t, new LeaseServer(), clock, "alone");
  await pass(clock, 5);
  alone.stop.abort();
  await pass(clock, 30);
  t.throws(() => alone.election.checkLease(5_000), { message: "failed election to renew leadership on lease manager" });
  t.doesNotThrow(() => alone.election.checkLease(60_000));
});

t.test("an instance that is stopped before it leads rejects", async (t) => {
  const [server, clock] = [new LeaseServer(), new FakeClock()];
  server.unreachable.add("first");
  const first = startInstance(t, server, clock, "first");
  await pass(clock, 5);
  first.stop.abort(new Error("stopped"));
  await t.rejects(first.election.elected, { message: "stopped" });
  await t.resolves(first.election.release());
});
