import t from "tap";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { storageVersionMigrationKind } from "../../api/storagemigration/storage-version-migration/kind.ts";
import type { StorageVersionMigration } from "../../api/storagemigration/storage-version-migration/schema.ts";
import type { Client } from "../../client/client.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeInformers } from "../../testing/client/fake-informers.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { runStorageVersionMigrator } from "./storage-version-migrator.ts";

const START = Date.UTC(2026, 0, 1);
const SECRETS = { group: "", version: "v1", resource: "secrets" };

/** Migrates secrets of these names; `patch` may throw. Returns what was written. */
async function migrate(
  names: readonly string[],
  patch: (name: string, attempt: number) => void = () => {},
  kinds: readonly Kind[] = [secretKind as Kind, storageVersionMigrationKind as Kind],
) {
  const clock = new FakeClock(START);
  const informers = new FakeInformers();
  const patches: unknown[] = [];
  const states: string[] = [];
  const client: Pick<Client, "list" | "patch" | "updateStatus"> = {
    // Two pages.
    list: async <T extends ApiObject>(_kind: Kind<T>, query = {}) => {
      const { limit, continue: token } = query as { readonly limit?: number; readonly continue?: string };
      const part = token === undefined ? names.slice(0, 1) : names.slice(1);
      const items = part.map((name) => ({
        metadata: { name, namespace: "n", uid: `u-${name}`, resourceVersion: "3" },
      }));
      const more = token === undefined && limit !== 1 && names.length > 1;
      return { items: items as ApiObject[] as T[], resourceVersion: "7", ...(more && { continue: "2" }) };
    },
    patch: async (_kind, { name }, type, value, options) => {
      patches.push([name, type, value, options?.query?.fieldManager]);
      patch(name, patches.length);
      return {} as never;
    },
    updateStatus: async (kind, object) => {
      const { status } = object as StorageVersionMigration;
      const conditions = (status?.conditions ?? []).map((one) =>
        `${one.type}=${one.status} ${one.message ?? ""}`.trim(),
      );
      states.push([status?.resourceVersion, ...conditions].join(", "));
      informers.put(kind, object);
      return object;
    },
  };
  const stop = new AbortController();
  const running = runStorageVersionMigrator({
    client: client as Client,
    observer: client as Client,
    informers,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    kinds,
    options: defaultControllerOptions,
    signal: stop.signal,
  });
  informers.put(storageVersionMigrationKind, { metadata: { name: "m" }, spec: { resource: SECRETS } });
  informers.sync();
  for (let step = 0; step < 20; step++) await clock.advance(100);
  stop.abort(new Error("The test stops the controller"));
  await running;
  return { patches, states };
}

t.test("all objects get an apply without fields, with their uid and version", async (t) => {
  const { patches, states } = await migrate(["a", "b"]);
  const patchOf = (uid: string) => ({ apiVersion: "v1", kind: "Secret", metadata: { uid, resourceVersion: "3" } });
  t.same(patches, [
    ["a", "apply", patchOf("u-a"), "storage-version-migrator-controller"],
    ["b", "apply", patchOf("u-b"), "storage-version-migrator-controller"],
  ]);
  t.same(states, ["7", "7, Running=True", "7, Running=False, Succeeded=True"]);
});

t.test("a conflict means that the object was written meanwhile", async (t) => {
  const { states } = await migrate(["a"], () => {
    throw new StatusError(409, "Conflict", "modified");
  });
  t.equal(states.at(-1), "7, Running=False, Succeeded=True");
});

t.test("another error ends the migration", async (t) => {
  const { states, patches } = await migrate(["a", "b"], () => {
    throw new StatusError(422, "Invalid", "no");
  });
  t.equal(patches.length, 1);
  t.equal(states.at(-1), "7, Running=False, Failed=True migration encountered unhandled error");
});

t.test("the migration is repeated while the server has no time", async (t) => {
  const { states } = await migrate(["a"], (_name, attempt) => {
    if (attempt === 1) throw new StatusError(429, "TooManyRequests", "later");
  });
  t.same(states, ["7", "7, Running=True", "7, Running=True", "7, Running=False, Succeeded=True"]);
});

t.test("a migration of an unknown resource fails", async (t) => {
  const { states } = await migrate([], undefined, [storageVersionMigrationKind as Kind]);
  t.same(states, [", Failed=True resource does not exist in discovery"]);
});

t.test("nothing happens where the API is off", async (t) => {
  t.same(await migrate(["a"], undefined, []), { patches: [], states: [] });
});
