/** Registries over a store in memory, with a fake clock and seeded random source. */
import { builtinScheme } from "../../api/builtin.ts";
import { type Status, StatusError } from "../../api/status.ts";
import { Registries } from "../../registry/registries.ts";
import type { RegistryDeps } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { Store } from "../../storage/store.ts";
import { FakeClock } from "../std/fake-clock.ts";

export interface Fixture extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly store: Store;
  readonly registries: Registries;
  /** A scope in this namespace; `""` for cluster-scoped kinds. */
  scope(namespace?: string, signal?: AbortSignal): Scope;
}

export function fixture(deps: Partial<RegistryDeps> = {}): Fixture {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const base = { store, prefix: "/registry", clock, random: seededRandom(1), log: silentLogger };
  const registries = new Registries(builtinScheme(), { ...base, ...deps });
  const user = { name: "alice", uid: "", groups: [], extra: {} };
  return {
    clock,
    store,
    registries,
    scope: (namespace = "default", signal = new AbortController().signal) => ({ namespace, group: "", user, signal }),
    async [Symbol.asyncDispose]() {
      await registries[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

/** The `Status` that a promise rejects with. Throws when it resolves. */
export async function rejectionStatus(promise: Promise<unknown>): Promise<Status> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  throw new Error("the promise did not reject");
}
