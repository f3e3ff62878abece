/** Runs a controller once over given objects, and lists what it writes. */
import { eventKind } from "../../api/core/event/kind.ts";
import type { Event } from "../../api/core/event/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { notFound } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import type { RunController } from "../../controllers/controller.ts";
import { defaultControllerOptions } from "../../controllers/controller-options.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeInformers } from "../client/fake-informers.ts";
import { FakeClock } from "../std/fake-clock.ts";

export const START = Date.UTC(2026, 0, 1, 12);

export interface KindObjects<T extends ApiObject = ApiObject> {
  readonly kind: Kind<T>;
  readonly objects: readonly T[];
}

/** Objects of one kind, for a list of several kinds. */
export function objectsOf<T extends ApiObject>(kind: Kind<T>, ...objects: readonly T[]): KindObjects {
  return { kind: kind as Kind, objects };
}

export interface SyncOnceOptions {
  /** Throws to make the write fail. */
  readonly fail?: (write: string) => void;
  /** Shows a write; by default the verb, the kind and the name, or `Reason message` of an event. */
  readonly show?: (write: Write) => string;
  /** The informers deliver these objects after the first sync. */
  readonly changes?: readonly KindObjects[];
  /** Passes this time after the first sync. */
  readonly advanceMs?: number;
}

export interface Write {
  readonly verb: "create" | "update" | "status" | "patch" | "delete";
  readonly kind: Kind;
  readonly object: ApiObject;
}

/** The owner appears last, so that it is synced once. Writes do not reach the informers. */
export async function syncOnce(
  run: RunController,
  owner: KindObjects,
  objects: readonly KindObjects[],
  { fail, show = showWrite, changes = [], advanceMs = 0 }: SyncOnceOptions = {},
): Promise<readonly string[]> {
  const writes: string[] = [];
  const clock = new FakeClock(START);
  const informers = new FakeInformers();
  for (const { kind, objects: each } of objects) for (const object of each) informers.put(kind, object);
  const stop = new AbortController();
  const client = createRecordingClient(informers, (write) => {
    const shown = show(write);
    writes.push(shown);
    fail?.(shown);
  });
  const running = run({
    client,
    observer: client,
    informers,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    kinds: [],
    options: defaultControllerOptions,
    signal: stop.signal,
  });
  informers.of(owner.kind);
  informers.sync();
  await clock.advance(0);
  for (const object of owner.objects) informers.put(owner.kind, object);
  await clock.advance(0);
  for (const { kind, objects: each } of changes) for (const object of each) informers.put(kind, object);
  await clock.advance(0);
  if (advanceMs > 0) await clock.advance(advanceMs);
  await clock.advance(0);
  stop.abort(new Error("The test stops the controller"));
  await running;
  return writes;
}

function showWrite({ verb, kind, object }: Write): string {
  if (kind === (eventKind as Kind)) {
    const { reason, message } = object as Event;
    return `event ${reason} ${message}`;
  }
  const { name, generateName } = object.metadata ?? {};
  return `${verb} ${kind.singular} ${name ?? `${generateName}*`}`;
}

function createRecordingClient(informers: FakeInformers, record: (write: Write) => void): Client {
  let created = 0;
  const asWritten = <T extends ApiObject>(verb: Write["verb"], kind: Kind<T>, object: T): T => {
    record({ verb, kind: kind as Kind, object });
    const { metadata } = object;
    const name = metadata?.name ?? `${metadata?.generateName}${++created}`;
    return { ...object, metadata: { uid: `uid-${name}`, ...metadata, name } };
  };
  const client: Pick<Client, "get" | "create" | "update" | "updateStatus" | "patch" | "delete"> = {
    get: async (kind, { name, namespace }) => {
      const found = informers.of(kind).get(name, namespace);
      if (found === undefined) throw notFound({ group: kind.group, resource: kind.plural, name });
      return found;
    },
    create: async (kind, object) => asWritten("create", kind, object),
    update: async (kind, object) => asWritten("update", kind, object),
    updateStatus: async (kind, object) => asWritten("status", kind, object),
    patch: async (kind, { name, namespace }, _type, patch) => {
      const { metadata, ...change } = patch as ApiObject;
      const object = { ...informers.of(kind).get(name, namespace), ...change };
      return asWritten("patch", kind, { ...object, metadata: { ...object.metadata, ...metadata, name } } as never);
    },
    delete: async (kind, { name, namespace }) => {
      asWritten("delete", kind as Kind, { metadata: { name, namespace } });
    },
  };
  return client as Client;
}
