/** The controllers that can run inside the API server process, by the name `--embedded-controllers` knows them by. */
import type { UserInfo } from "../auth/user.ts";
import type { Client } from "../client/client.ts";
import type { ControllerDeps, RunController } from "./controller.ts";

interface Entry {
  /** Who it is to the API server; authorization gives this name just the rights it needs. */
  readonly user: string;
  readonly groups?: readonly string[];
  readonly load: () => Promise<RunController>;
}

const SERVICE_ACCOUNTS = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

const entries: Readonly<Record<string, Entry>> = {
  "clusterrole-aggregation": {
    user: "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () =>
      (await import("./clusterrole-aggregation/clusterrole-aggregation-controller.ts")).runClusterRoleAggregation,
  },
  namespace: {
    user: "system:serviceaccount:kube-system:namespace-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./namespace/namespace-controller.ts")).runNamespaceController,
  },
  "pv-protection": {
    user: "system:serviceaccount:kube-system:pv-protection-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volume-protection/volume-protection-controller.ts")).runVolumeProtection,
  },
  "pvc-protection": {
    user: "system:serviceaccount:kube-system:pvc-protection-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volume-protection/volume-protection-controller.ts")).runClaimProtection,
  },
  scheduler: {
    user: "system:kube-scheduler",
    load: async () => (await import("./scheduler/scheduler.ts")).runScheduler,
  },
};

export const controllerNames: readonly string[] = Object.keys(entries);

/** `*` stands for all there are. Throws, naming what is allowed, for a name that is unknown. */
export function expandControllerNames(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => name !== "*" && !Object.hasOwn(entries, name));
  if (unknown !== undefined) {
    throw new Error(`unknown controller ${JSON.stringify(unknown)}; allowed: *, ${controllerNames.join(", ")}`);
  }
  return names.includes("*") ? controllerNames : [...new Set(names)];
}

export interface StartControllersDeps extends Omit<ControllerDeps, "client" | "signal"> {
  /** A client that speaks to the server as this user. */
  readonly clientFor: (user: UserInfo) => Client;
}

export interface RunningControllers extends AsyncDisposable {
  /** Resolves when all have stopped after the disposal; rejects when one ends before with an error. */
  readonly ended: Promise<void>;
}

/** Starts the named controllers; disposing stops them and waits for them. */
export function startControllers(names: readonly string[], deps: StartControllersDeps): RunningControllers {
  const stopping = new AbortController();
  const ended = Promise.all(
    expandControllerNames(names).map(async (name) => {
      const { user, groups = [], load } = entries[name]!;
      const run = await load();
      const client = deps.clientFor({ name: user, uid: "", groups, extra: {} });
      const { clock, random } = deps;
      await run({ client, clock, random, log: deps.log.child(name), signal: stopping.signal });
    }),
  ).then(() => {});
  ended.catch(() => {});
  return {
    ended,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("The controllers are being stopped"));
      await ended.catch(() => {});
    },
  };
}
