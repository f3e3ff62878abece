/** Starts the informers of dynamic resources, and creates their plugin. Loaded only with the gate. */

import type { ApiObject } from "../../../api/kind.ts";
import { deviceTaintRuleKind } from "../../../api/resource/device-taint-rule/kind.ts";
import {
  betaDeviceClassKind,
  betaResourceClaimKind,
  betaResourceSliceKind,
} from "../../../api/resource/flat-versions/kinds.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { ClusterEvent, EventResource } from "../../framework/cluster-event.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { unresolvable } from "../../framework/rejection.ts";
import type { InformerSource } from "../../watch/cluster-informers.ts";
import { ClaimTracker } from "./claim-tracker.ts";
import type { DeviceFeatures } from "./device-requests.ts";
import { createDynamicResources, NAME } from "./dynamic-resources.ts";
import { SelectorCache } from "./selector-cache.ts";
import { SliceTracker } from "./slice-tracker.ts";

const API = "resource.k8s.io/v1beta1";

export interface DynamicResources extends AsyncDisposable {
  readonly plugin: Plugin;
  /** Resolves when all kinds are listed. */
  readonly synced: Promise<unknown>;
  /** Passes the changes of their objects. Returns a function to stop. */
  subscribe(move: (event: ClusterEvent) => void): () => void;
}

export interface OpenDynamicResourcesDeps {
  readonly client: Client;
  readonly informers: InformerSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly features: DeviceFeatures;
}

export async function openDynamicResources(deps: OpenDynamicResourcesDeps): Promise<DynamicResources> {
  const { informers, log, features } = deps;
  if (!(await isServed(deps.client))) {
    log.warn("The gate DynamicResourceAllocation needs an API that is not served", { api: API });
    const stop = (): void => {};
    return {
      plugin: withoutApi,
      synced: Promise.resolve(),
      subscribe: () => stop,
      [Symbol.asyncDispose]: async () => {},
    };
  }
  const stack = new AsyncDisposableStack();
  const classes = informers.of(betaDeviceClassKind);
  const sliceInformer = informers.of(betaResourceSliceKind);
  const claimInformer = informers.of(betaResourceClaimKind);
  const rules = features.deviceTaints ? informers.of(deviceTaintRuleKind) : undefined;
  const selectors = new SelectorCache();
  const claims = stack.use(new ClaimTracker(claimInformer));
  const slices = stack.use(new SliceTracker({ slices: sliceInformer, rules, classes, selectors, log }));
  // Bounded by the number of bindings that fail at the same time.
  const requests = new Set<Promise<void>>();
  stack.defer(async () => void (await Promise.all(requests)));
  const plugin = createDynamicResources({
    ...deps,
    claims,
    slices,
    selectors,
    findClass: (name) => classes.get(name),
    onBackground(request) {
      const tracked = request.finally(() => requests.delete(tracked));
      requests.add(tracked);
    },
  });
  return {
    plugin,
    synced: Promise.all([classes.synced, sliceInformer.synced, claimInformer.synced, rules?.synced]),
    subscribe(move) {
      const stops = [
        forward(claimInformer, "ResourceClaim", move),
        forward(classes, "DeviceClass", move),
        forward(sliceInformer, "ResourceSlice", move),
        // A rule changes the taints of devices in slices.
        ...(rules === undefined
          ? []
          : [forward(rules, "ResourceSlice", (event) => move({ ...event, action: "Update" }))]),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The informers of an API that is not served would keep all pods from being scheduled. */
const withoutApi: Plugin = {
  name: NAME,
  points: ["preFilter", "filter"],
  preFilter({ pod }) {
    if ((pod.pod.spec?.resourceClaims ?? []).length === 0) return "skip";
    return { rejection: unresolvable(NAME, `the API server does not serve ${API}`) };
  },
};

/** Other failures are those of informers, which retry. */
async function isServed(client: Client): Promise<boolean> {
  try {
    await client.listResources?.(API);
    return true;
  } catch (error) {
    return !(error instanceof StatusError && error.status.code === 404);
  }
}

function forward<T extends ApiObject>(
  informer: Informer<T>,
  resource: EventResource,
  move: (event: ClusterEvent) => void,
): () => void {
  return informer.subscribe({
    put: (after, before) => move({ resource, action: before === undefined ? "Add" : "Update", before, after }),
    delete: (before) => move({ resource, action: "Delete", before, after: undefined }),
  });
}
