/** Effects of the flags of the audit log. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { quietTime } from "../../../testing/flags/mutant.ts";
import type { Effect, Name, Settings, startServer } from "./support.ts";

type StartServer = typeof startServer;
type Server = Awaited<ReturnType<StartServer>>;

interface AuditEvent {
  readonly apiVersion: string;
  readonly auditID: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Records the end of requests under `/api` and `/version`. */
const POLICY = JSON.stringify({
  apiVersion: "audit.svc.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    { level: "RequestResponse", verbs: ["create"], resources: [{ group: "" }] },
    { level: "Metadata", nonResourceURLs: ["/version"] },
  ],
});
const MB = 1e6;

class AuditFolder {
  readonly path: string;

  constructor(t: Test) {
    this.path = mkdtempSync(join(tmpdir(), "svc-audit-"));
    t.teardown(() => rmSync(this.path, { recursive: true }));
    writeFileSync(this.file("policy"), POLICY);
  }

  file(name: string): string {
    return join(this.path, name);
  }

  get log(): string {
    return existsSync(this.file("audit.log")) ? readFileSync(this.file("audit.log"), "utf8") : "";
  }

  get events(): readonly AuditEvent[] {
    const lines = this.log.split("\n").filter((line) => line !== "");
    return lines.map((line) => JSON.parse(line) as AuditEvent);
  }

  get backups(): readonly string[] {
    return readdirSync(this.path).filter((name) => name.startsWith("audit-"));
  }

  settings(more: Settings): Settings {
    return { "audit-policy-file": this.file("policy"), "audit-log-path": this.file("audit.log"), ...more };
  }
}

async function getVersion(server: Server, times = 1): Promise<void> {
  for (let request = 0; request < times; request++) await server.send("GET /version");
}

/** During which events that are not throttled are written: ten seconds of the server, and what the machine needs. */
async function passTime(server: Server, isOver: () => boolean): Promise<void> {
  const [began, deadline] = [server.clock.monotonic(), performance.now() + quietTime(0)];
  const hasPassed = () => server.clock.monotonic() - began > 10_000 && performance.now() > deadline;
  await server.until("ten seconds have passed", () => hasPassed() || isOver());
}

async function createLarge(server: Server, bytes: number, times = 1): Promise<void> {
  for (let request = 0; request < times; request++) {
    const body = { metadata: { generateName: "a" }, data: { a: "x".repeat(bytes) } };
    await server.send("POST /api/v1/namespaces/default/configmaps", body);
  }
}

/** A receiver of event lists. */
async function startReceiver(t: Test, folder: AuditFolder) {
  const batches: (readonly AuditEvent[])[] = [];
  const state = { isFailing: false, requests: 0 };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      state.requests++;
      const list = JSON.parse(body) as { apiVersion: string; items: readonly AuditEvent[] };
      if (!state.isFailing) batches.push(list.items.map((item) => ({ ...item, apiVersion: list.apiVersion })));
      response.writeHead(state.isFailing ? 500 : 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "a", cluster: { server: `http://127.0.0.1:${port}/audit` } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "" } }],
    "current-context": "a",
  };
  writeFileSync(folder.file("kubeconfig"), JSON.stringify(kubeconfig));
  const settings = (more: Settings): Settings => ({
    "audit-policy-file": folder.file("policy"),
    "audit-webhook-config-file": folder.file("kubeconfig"),
    "audit-webhook-batch-max-wait": "0s",
    ...more,
  });
  return { batches, state, settings, events: () => batches.flat() };
}

export function auditEffects(start: StartServer): Partial<Record<Name, Effect>> {
  const logged = async (t: Test, more: Settings, work: (server: Server, folder: AuditFolder) => Promise<void>) => {
    const folder = new AuditFolder(t);
    await using server = await start(folder.settings(more));
    await work(server, folder);
    await server[Symbol.asyncDispose]();
    return folder;
  };
  const received = async (
    t: Test,
    more: Settings,
    work: (server: Server, receiver: Awaited<ReturnType<typeof startReceiver>>) => Promise<void>,
  ) => {
    const receiver = await startReceiver(t, new AuditFolder(t));
    await using server = await start(receiver.settings(more));
    await work(server, receiver);
    await server[Symbol.asyncDispose]();
    return receiver;
  };
  const batched = { "audit-log-mode": "batch", "audit-log-batch-max-wait": "1h" } as const;
  const throttled = {
    "audit-log-mode": "batch",
    "audit-log-batch-throttle-enable": "true",
    "audit-log-batch-throttle-qps": "0.001",
    "audit-log-batch-throttle-burst": "2",
  } as const;
  const isThrottled: Effect = async (t) => {
    await logged(t, throttled, async (server, folder) => {
      await getVersion(server, 4);
      await server.until("the burst is written", () => folder.events.length >= 2);
      await passTime(server, () => folder.events.length > 2);
      t.equal(folder.events.length, 2);
    });
  };
  const webhookThrottled = {
    "audit-webhook-batch-max-size": "1",
    "audit-webhook-batch-throttle-qps": "0.001",
    "audit-webhook-batch-throttle-burst": "2",
  } as const;
  const isWebhookThrottled: Effect = async (t) => {
    await received(t, webhookThrottled, async (server, { events }) => {
      await getVersion(server, 4);
      await server.until("the burst is sent", () => events().length >= 2);
      await passTime(server, () => events().length > 2);
      t.equal(events().length, 2);
    });
  };
  const truncated = (events: readonly AuditEvent[]) =>
    events.map((each) => each.annotations?.["audit.k8s.io/truncated"]);
  const truncatesLog: Effect = async (t) => {
    const flags = { "audit-log-truncate-enabled": "true", "audit-log-truncate-max-event-size": "2000" };
    const { events } = await logged(t, flags, (server) => createLarge(server, 5000));
    t.same(truncated(events), ["true"]);
  };
  const truncatesWebhook: Effect = async (t) => {
    const flags = { "audit-webhook-truncate-enabled": "true", "audit-webhook-truncate-max-event-size": "2000" };
    const { events } = await received(t, flags, (server) => createLarge(server, 5000));
    t.same(truncated(events()), ["true"]);
  };
  return {
    "audit-log-path": async (t) => {
      const { events } = await logged(t, {}, (server) => getVersion(server));
      t.equal(events.length, 1);
    },
    "audit-policy-file": async (t) => {
      const { events } = await logged(t, {}, async (server) => {
        await server.send("GET /healthz");
        await getVersion(server);
      });
      t.equal(events.length, 1, "only what the policy records");
    },
    "audit-log-mode": async (t) => {
      await using server = await start(
        new AuditFolder(t).settings({ "audit-log-path": "/dev/full", "audit-log-mode": "blocking-strict" }),
      );
      // A strict backend refuses requests whose first event cannot be written.
      const metrics = await server.send("GET /version");
      t.equal(metrics.status, 200, "the policy omits the first stage");
      const policy = new AuditFolder(t);
      writeFileSync(policy.file("policy"), POLICY.replace('"omitStages":["RequestReceived"],', ""));
      const strict = { "audit-log-path": "/dev/full", "audit-log-mode": "blocking-strict" };
      await using refusing = await start(policy.settings(strict));
      t.equal((await refusing.send("GET /version")).status, 500);
    },
    "audit-log-format": async (t) => {
      const { log } = await logged(t, { "audit-log-format": "legacy" }, (server) => getVersion(server));
      t.match(log, /^\S+ AUDIT: id=".*" stage="ResponseComplete" .* uri="\/version" response="200"\n$/);
    },
    "audit-log-version": async (t) => {
      const { events } = await logged(t, { "audit-log-version": "audit.k8s.io/v1" }, (server) => getVersion(server));
      t.equal(events[0]?.apiVersion, "audit.k8s.io/v1");
    },
    "audit-log-maxsize": async (t) => {
      const folder = await logged(t, { "audit-log-maxsize": "1" }, (server) => createLarge(server, 0.3 * MB, 2));
      t.equal(folder.backups.length, 1);
    },
    "audit-log-maxbackup": async (t) => {
      const flags = { "audit-log-maxsize": "1", "audit-log-maxbackup": "1" };
      const folder = await logged(t, flags, async (server) => {
        for (let time = 0; time < 4; time++) {
          await createLarge(server, 0.3 * MB, 1);
          await server.clock.advance(1000);
        }
      });
      t.equal(folder.backups.length, 1);
    },
    "audit-log-maxage": async (t) => {
      const folder = new AuditFolder(t);
      writeFileSync(folder.file("audit-2020-01-01T00-00-00.000.log"), "old\n");
      await using server = await start(folder.settings({ "audit-log-maxage": "1" }));
      await server.until("the old file is removed", () => folder.backups.length === 0);
    },
    "audit-log-compress": async (t) => {
      const folder = new AuditFolder(t);
      writeFileSync(folder.file("audit-2020-01-01T00-00-00.000.log"), "old\n");
      await using server = await start(folder.settings({ "audit-log-compress": "true" }));
      const isCompressed = (): boolean => folder.backups.join() === "audit-2020-01-01T00-00-00.000.log.gz";
      await server.until("the old file is compressed", isCompressed);
    },
    "audit-log-batch-buffer-size": async (t) => {
      const flags = { ...batched, "audit-log-batch-max-size": "10", "audit-log-batch-buffer-size": "2" };
      t.equal((await logged(t, flags, (server) => getVersion(server, 5))).events.length, 2);
    },
    "audit-log-batch-max-size": async (t) => {
      const folder = await logged(t, { ...batched, "audit-log-batch-max-size": "10" }, async (server, folder) => {
        await getVersion(server, 5);
        await passTime(server, () => folder.log !== "");
        t.equal(folder.log, "", "the batch is not full");
      });
      t.equal(folder.events.length, 5, "written when the server stops");
    },
    "audit-log-batch-max-wait": async (t) => {
      const flags = { ...batched, "audit-log-batch-max-size": "10", "audit-log-batch-max-wait": "1m" };
      await logged(t, flags, async (server, folder) => {
        await getVersion(server, 5);
        await server.clock.advance(40_000);
        await passTime(server, () => folder.log !== "");
        t.equal(folder.log, "", "by default the batch would not wait");
        await server.clock.advance(60_000);
        await server.until("the batch is written", () => folder.events.length === 5);
      });
    },
    "audit-log-batch-throttle-enable": isThrottled,
    "audit-log-batch-throttle-qps": isThrottled,
    "audit-log-batch-throttle-burst": isThrottled,
    "audit-log-truncate-enabled": truncatesLog,
    "audit-log-truncate-max-event-size": truncatesLog,
    "audit-log-truncate-max-batch-size": async (t) => {
      const flags = {
        ...batched,
        "audit-log-batch-max-size": "10",
        "audit-log-maxsize": "1",
        "audit-log-truncate-enabled": "true",
        "audit-log-truncate-max-event-size": String(MB),
        "audit-log-truncate-max-batch-size": String(MB),
      };
      const folder = await logged(t, flags, (server) => createLarge(server, 0.3 * MB, 3));
      t.ok(folder.backups.length > 0, "each part of the batch is written by itself");
    },
    "audit-webhook-config-file": async (t) => {
      const { events } = await received(t, {}, (server) => getVersion(server));
      t.equal(events().length, 1);
    },
    "audit-webhook-mode": async (t) => {
      await received(t, { "audit-webhook-mode": "blocking" }, async (server, { events }) => {
        await getVersion(server);
        t.equal(events().length, 1, "before the response");
      });
    },
    "audit-webhook-version": async (t) => {
      const flags = { "audit-webhook-version": "audit.k8s.io/v1" };
      const { events } = await received(t, flags, (server) => getVersion(server));
      t.equal(events()[0]?.apiVersion, "audit.k8s.io/v1");
    },
    "audit-webhook-batch-buffer-size": async (t) => {
      const flags = { "audit-webhook-batch-max-wait": "1h", "audit-webhook-batch-buffer-size": "2" };
      t.equal((await received(t, flags, (server) => getVersion(server, 5))).events().length, 2);
    },
    "audit-webhook-batch-max-size": async (t) => {
      const flags = { "audit-webhook-batch-max-wait": "1h", "audit-webhook-batch-max-size": "2" };
      const { batches } = await received(t, flags, (server) => getVersion(server, 6));
      t.same(
        batches.map(({ length }) => length),
        [2, 2, 2],
      );
    },
    "audit-webhook-batch-max-wait": async (t) => {
      await received(t, { "audit-webhook-batch-max-wait": "10s" }, async (server, { events }) => {
        await getVersion(server);
        await server.clock.advance(11_000);
        await server.until("the batch is sent", () => events().length === 1);
        // The default is 30 seconds.
        t.ok(server.clock.monotonic() < 25_000);
      });
    },
    "audit-webhook-batch-throttle-enable": async (t) => {
      const flags = { ...webhookThrottled, "audit-webhook-batch-throttle-enable": "false" };
      await received(t, flags, async (server, { events }) => {
        await getVersion(server, 4);
        await server.until("all are sent", () => events().length === 4);
        t.ok(server.clock.monotonic() < 1_000_000, "sooner than the rate allows");
      });
    },
    "audit-webhook-batch-throttle-qps": isWebhookThrottled,
    "audit-webhook-batch-throttle-burst": isWebhookThrottled,
    "audit-webhook-truncate-enabled": truncatesWebhook,
    "audit-webhook-truncate-max-event-size": truncatesWebhook,
    "audit-webhook-truncate-max-batch-size": async (t) => {
      const flags = {
        "audit-webhook-batch-max-wait": "1h",
        "audit-webhook-truncate-enabled": "true",
        "audit-webhook-truncate-max-event-size": "3000",
        "audit-webhook-truncate-max-batch-size": "3000",
      };
      const { batches } = await received(t, flags, (server) => getVersion(server, 9));
      t.ok(batches.length > 1, "the batch is split");
    },
    "audit-webhook-initial-backoff": async (t) => {
      await received(t, { "audit-webhook-initial-backoff": "1s" }, async (server, { state, events }) => {
        state.isFailing = true;
        await getVersion(server);
        await server.until("the first request failed", () => state.requests === 1);
        const failedAt = server.clock.monotonic();
        state.isFailing = false;
        await server.until("the batch is sent again", () => events().length === 1);
        t.ok(server.clock.monotonic() - failedAt < 5000, "the default is 10 seconds");
      });
    },
  };
}
