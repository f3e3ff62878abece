/** The controllers that run inside the API server, by their names in `--embedded-controllers`. */
import type { UserInfo } from "../auth/user.ts";
import type { Client } from "../client/client.ts";
import { createSharedInformers } from "../client/informer/shared-informers.ts";
import { type ControllerDeps, isFeatureEnabled, type RunController } from "./controller.ts";
import { type ControllerOptions, defaultControllerOptions } from "./controller-options.ts";

interface ControllerDescriptor {
  /** The user name of the controller's client; bootstrap roles grant it the permissions that it needs. */
  readonly user: string;
  readonly groups?: readonly string[];
  /** The controller runs while all of these gates are on. */
  readonly gates?: readonly string[];
  readonly load: () => Promise<RunController>;
}

const SERVICE_ACCOUNTS = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

/** The user of the informers of all controllers, as in Kubernetes. */
const OBSERVER = "system:kube-controller-manager";

const MANAGER = "kube-controller-manager";
/** As in Kubernetes, those that a cloud's controller manager may run instead. */
const REPORTED_CONTROLLERS = ["nodeipam", "service"];

const descriptors: Readonly<Record<string, ControllerDescriptor>> = {
  attachdetach: {
    user: "system:serviceaccount:kube-system:attachdetach-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volumes/attach-detach/attach-detach-controller.ts")).runAttachDetachController,
  },
  bootstrapsigner: {
    user: "system:serviceaccount:kube-system:bootstrap-signer",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./bootstrap/bootstrap-signer.ts")).runBootstrapSigner,
  },
  "clusterrole-aggregation": {
    user: "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () =>
      (await import("./clusterrole-aggregation/clusterrole-aggregation-controller.ts")).runClusterRoleAggregation,
  },
  cronjob: {
    user: "system:serviceaccount:kube-system:cronjob-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./cron-job/cron-job-controller.ts")).runCronJobController,
  },
  csrapproving: {
    user: "system:serviceaccount:kube-system:certificate-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./certificates/csr-approving-controller.ts")).runCsrApprovingController,
  },
  csrcleaner: {
    user: "system:serviceaccount:kube-system:certificate-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./certificates/csr-cleaner-controller.ts")).runCsrCleanerController,
  },
  csrsigning: {
    user: "system:serviceaccount:kube-system:certificate-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./certificates/csr-signing-controller.ts")).runCsrSigningController,
  },
  daemonset: {
    user: "system:serviceaccount:kube-system:daemon-set-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./daemon-set/daemon-set-controller.ts")).runDaemonSetController,
  },
  deployment: {
    user: "system:serviceaccount:kube-system:deployment-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./deployment/deployment-controller.ts")).runDeploymentController,
  },
  "device-taint-eviction": {
    user: "system:serviceaccount:kube-system:device-taint-eviction-controller",
    groups: SERVICE_ACCOUNTS,
    gates: ["DynamicResourceAllocation", "DRADeviceTaints"],
    load: async () =>
      (await import("./device-taint-eviction/device-taint-eviction-controller.ts")).runDeviceTaintEviction,
  },
  disruption: {
    user: "system:serviceaccount:kube-system:disruption-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./disruption/disruption-controller.ts")).runDisruptionController,
  },
  endpoint: {
    user: "system:serviceaccount:kube-system:endpoint-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./endpoints/endpoints-controller.ts")).runEndpointsController,
  },
  endpointslice: {
    user: "system:serviceaccount:kube-system:endpointslice-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./endpoints/endpoint-slice-controller.ts")).runEndpointSliceController,
  },
  endpointslicemirroring: {
    user: "system:serviceaccount:kube-system:endpointslicemirroring-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () =>
      (await import("./endpoints/endpoint-slice-mirroring-controller.ts")).runEndpointSliceMirroringController,
  },
  "ephemeral-volume": {
    user: "system:serviceaccount:kube-system:ephemeral-volume-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volumes/ephemeral/ephemeral-volume-controller.ts")).runEphemeralVolumeController,
  },
  "garbage-collector": {
    user: "system:serviceaccount:kube-system:generic-garbage-collector",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./garbage-collector/garbage-collector.ts")).runGarbageCollector,
  },
  horizontalpodautoscaling: {
    user: "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./horizontal-pod-autoscaler/autoscaler-controller.ts")).runAutoscalerController,
  },
  job: {
    user: "system:serviceaccount:kube-system:job-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./job/job-controller.ts")).runJobController,
  },
  "legacy-serviceaccount-token-cleaner": {
    user: "system:serviceaccount:kube-system:legacy-service-account-token-cleaner",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./service-account/legacy-token-cleaner.ts")).runLegacyTokenCleaner,
  },
  "local-path-provisioner": {
    user: "system:serviceaccount:kube-system:local-path-provisioner",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volumes/local-path/local-path-provisioner.ts")).runLocalPathProvisioner,
  },
  namespace: {
    user: "system:serviceaccount:kube-system:namespace-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./namespace/namespace-controller.ts")).runNamespaceController,
  },
  "node-lifecycle": {
    user: "system:serviceaccount:kube-system:node-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./node-lifecycle/node-lifecycle-controller.ts")).runNodeLifecycleController,
  },
  nodeipam: {
    user: "system:serviceaccount:kube-system:node-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./node-ipam/node-ipam-controller.ts")).runNodeIpamController,
  },
  "persistentvolume-binder": {
    user: "system:serviceaccount:kube-system:persistent-volume-binder",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volumes/binder/persistent-volume-binder.ts")).runPersistentVolumeBinder,
  },
  "persistentvolume-expander": {
    user: "system:serviceaccount:kube-system:expand-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volumes/expand/volume-expand-controller.ts")).runVolumeExpandController,
  },
  podgc: {
    user: "system:serviceaccount:kube-system:pod-garbage-collector",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./pod-gc/pod-gc-controller.ts")).runPodGcController,
  },
  "pv-protection": {
    user: "system:serviceaccount:kube-system:pv-protection-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volume-protection/volume-protection-controller.ts")).runPvProtectionController,
  },
  "pvc-protection": {
    user: "system:serviceaccount:kube-system:pvc-protection-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./volume-protection/volume-protection-controller.ts")).runPvcProtectionController,
  },
  resourceclaim: {
    user: "system:serviceaccount:kube-system:resource-claim-controller",
    groups: SERVICE_ACCOUNTS,
    gates: ["DynamicResourceAllocation"],
    load: async () => (await import("./resource-claim/resource-claim-controller.ts")).runResourceClaimController,
  },
  resourcequota: {
    user: "system:serviceaccount:kube-system:resourcequota-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./resource-quota/resource-quota-controller.ts")).runResourceQuotaController,
  },
  replicaset: {
    user: "system:serviceaccount:kube-system:replicaset-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./replica-set/replica-set-controller.ts")).runReplicaSetController,
  },
  replicationcontroller: {
    user: "system:serviceaccount:kube-system:replication-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./replica-set/replica-set-controller.ts")).runReplicationController,
  },
  "root-ca-certificate-publisher": {
    user: "system:serviceaccount:kube-system:root-ca-cert-publisher",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./service-account/root-ca-cert-publisher.ts")).runRootCaCertPublisher,
  },
  scheduler: {
    user: "system:kube-scheduler",
    load: async () => {
      const [{ runScheduler }, { createSchedulerMetrics }, { schedulerFeatures }] = await Promise.all([
        import("../scheduler/scheduler.ts"),
        import("../scheduler/metrics.ts"),
        import("../scheduler/config/features.ts"),
      ]);
      return ({ registry, features, ...deps }) => {
        const metrics = registry === undefined ? undefined : createSchedulerMetrics(registry);
        return runScheduler({ ...deps, metrics, features: features && schedulerFeatures(features) });
      };
    },
  },
  service: {
    user: "system:serviceaccount:kube-system:service-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./service-load-balancer/load-balancer-controller.ts")).runLoadBalancerController,
  },
  "service-cidr-controller": {
    user: "system:serviceaccount:kube-system:service-cidrs-controller",
    groups: SERVICE_ACCOUNTS,
    gates: ["MultiCIDRServiceAllocator"],
    load: async () => (await import("./service-cidr/service-cidr-controller.ts")).runServiceCidrController,
  },
  serviceaccount: {
    user: "system:serviceaccount:kube-system:service-account-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./service-account/service-account-controller.ts")).runServiceAccountController,
  },
  "serviceaccount-token": {
    // As in Kubernetes, this controller uses the controller manager's credentials.
    user: OBSERVER,
    load: async () => (await import("./service-account/tokens-controller.ts")).runServiceAccountTokenController,
  },
  statefulset: {
    user: "system:serviceaccount:kube-system:statefulset-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./stateful-set/stateful-set-controller.ts")).runStatefulSetController,
  },
  "storage-version-migrator": {
    user: "system:serviceaccount:kube-system:storage-version-migrator-controller",
    groups: SERVICE_ACCOUNTS,
    gates: ["StorageVersionMigrator"],
    load: async () =>
      (await import("./storage-version-migrator/storage-version-migrator.ts")).runStorageVersionMigrator,
  },
  "storageversion-garbage-collector": {
    user: "system:serviceaccount:kube-system:storage-version-garbage-collector",
    groups: SERVICE_ACCOUNTS,
    gates: ["APIServerIdentity", "StorageVersionAPI"],
    load: async () => (await import("./storage-version/storage-version-collector.ts")).runStorageVersionCollector,
  },
  tokencleaner: {
    user: OBSERVER,
    load: async () => (await import("./bootstrap/token-cleaner.ts")).runTokenCleaner,
  },
  ttl: {
    user: "system:serviceaccount:kube-system:ttl-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./ttl/ttl-controller.ts")).runTtlController,
  },
  "ttl-after-finished": {
    user: "system:serviceaccount:kube-system:ttl-after-finished-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () =>
      (await import("./ttl-after-finished/ttl-after-finished-controller.ts")).runTtlAfterFinishedController,
  },
  "validatingadmissionpolicy-status-controller": {
    user: "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller",
    groups: SERVICE_ACCOUNTS,
    load: async () => (await import("./admission-policy-status/policy-status-controller.ts")).runPolicyStatusController,
  },
};

export const controllerNames: readonly string[] = Object.keys(descriptors);

/** Whether the list of `--embedded-controllers` includes the controller. */
export function includesController(names: readonly string[], name: string): boolean {
  return !names.includes(`-${name}`) && (names.includes(name) || names.includes("*"));
}

/**
 * Expands `*` to all controllers, without those with a dash before their names. Throws an error that lists the valid
 * names for an unknown one.
 */
export function expandControllerNames(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => name !== "*" && !Object.hasOwn(descriptors, name.replace(/^-/, "")));
  if (unknown !== undefined) {
    throw new Error(`unknown controller ${JSON.stringify(unknown)}; allowed: *, ${controllerNames.join(", ")}`);
  }
  return controllerNames.filter((name) => includesController(names, name));
}

export interface StartControllersDeps
  extends Omit<ControllerDeps, "client" | "observer" | "informers" | "options" | "workers" | "signal"> {
  /** Settings that differ from the defaults. */
  readonly options?: Partial<ControllerOptions> | undefined;
  /** Creates a client that is authenticated as the user. */
  readonly clientFor: (user: UserInfo) => Client;
}

export interface RunningControllers extends AsyncDisposable {
  /** Resolves when all controllers have stopped after the disposal; rejects if one fails. */
  readonly ended: Promise<void>;
}

/** Starts the controllers. Disposal stops them and waits for them. */
export function startControllers(names: readonly string[], deps: StartControllersDeps): RunningControllers {
  const stopping = new AbortController();
  const observer = deps.clientFor(createUser(OBSERVER));
  const { clock, random } = deps;
  const options = { ...defaultControllerOptions, ...deps.options };
  const running = deps.registry?.gauge({
    name: "running_managed_controllers",
    help: "Indicates where instances of a controller are currently running",
    stability: "ALPHA",
    labels: ["manager", "name"],
  });
  const informers = createSharedInformers(
    { client: observer, clock, random, log: deps.log.child("informers") },
    stopping.signal,
  );
  const isEnabled = (name: string): boolean =>
    (descriptors[name]?.gates ?? []).every((gate) => isFeatureEnabled(deps, gate));
  const ended = Promise.all(
    expandControllerNames(names)
      .filter(isEnabled)
      .map(async (name, index) => {
        if (options.startIntervalMs > 0)
          await clock.sleep(index * options.startIntervalMs, stopping.signal).catch(() => {});
        if (stopping.signal.aborted) return;
        const { user, groups = [], load } = descriptors[name]!;
        const run = await load();
        const client = deps.clientFor(createUser(user, groups));
        const { clusterCa, signing, signLegacyToken, kinds, registry, queueMetrics, features } = deps;
        const log = deps.log.child(name);
        if (REPORTED_CONTROLLERS.includes(name)) running?.with(MANAGER, name).set(1);
        await run({
          client,
          observer,
          informers,
          clusterCa,
          signing,
          signLegacyToken,
          clock,
          random,
          log,
          kinds,
          registry,
          options,
          features,
          workers: options.concurrentSyncs[name],
          queueMetrics,
          signal: stopping.signal,
        });
      }),
  ).then(() => {});
  ended.catch(() => {});
  return {
    ended,
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("The controllers are stopping"));
      await ended.catch(() => {});
      await informers[Symbol.asyncDispose]();
    },
  };
}

function createUser(name: string, groups: readonly string[] = []): UserInfo {
  return { name, uid: "", groups, extra: {} };
}
