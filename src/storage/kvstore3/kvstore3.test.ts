import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { testStore } from "../../testing/storage/conformance.ts";
import { findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { prefixRange, type Store } from "../store.ts";
import { openEtcdStore } from "./kvstore3.ts";
import { rangeMethod } from "./protocol.ts";

const problem = findEtcdProblem();
const skip = problem === undefined ? false : `not run: ${problem}`;

/** A store in a server of its own, which ends with the store. */
async function openOwn(clock: Clock): Promise<Store> {
  const cluster = await startEtcd();
  const store = await openEtcdStore({ urls: cluster.urls, clock, log: silentLogger, compactionIntervalMs: 0 });
  return new Proxy(store, {
    get(target, name) {
      if (name !== Symbol.asyncDispose)
        return Reflect.get(target, name, target) instanceof Function
          ? (Reflect.get(target, name, target) as CallableFunction).bind(target)
          : Reflect.get(target, name, target);
      return async () => {
        await target[Symbol.asyncDispose]();
        await cluster[Symbol.asyncDispose]();
      };
    },
  });
}

t.test("openEtcdStore() is a Store", { skip }, (t) => testStore(t, openOwn, { isEmbedded: false }));
void rangeMethod;
void prefixRange;
