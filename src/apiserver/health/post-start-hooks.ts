/**
 * The post-start hook checks of the health endpoints, with Kubernetes' names and in its order, because tools look for
 * them. Each depends on one step of this server's start.
 */

/** The steps of a start. */
export type StartupStep = "handlers" | "bootstrap" | "definitions" | "services" | "apis" | "caches";

export interface PostStartHook {
  /** The name of the check: `poststarthook/rbac/bootstrap-roles`. */
  readonly name: string;
  readonly step: StartupStep;
}

export interface PostStartHookOptions {
  /** `--enable-priority-and-fairness` */
  readonly fairness: boolean;
  /** `--encryption-provider-config-automatic-reload` */
  readonly encryptionReload?: boolean | undefined;
  /** The gate APIServerIdentity; on when absent. */
  readonly identity?: boolean | undefined;
  /** The gate WatchCacheInitializationPostStartHook: the start waits for all watch caches. */
  readonly storageReadiness?: boolean | undefined;
}

export function postStartHooks({
  fairness,
  encryptionReload,
  identity = true,
  storageReadiness,
}: PostStartHookOptions): readonly PostStartHook[] {
  const hook = (step: StartupStep, ...names: readonly string[]): PostStartHook[] =>
    names.map((name) => ({ name: `poststarthook/${name}`, step }));
  return [
    ...(encryptionReload === true ? hook("handlers", "start-encryption-provider-config-automatic-reload") : []),
    ...hook("handlers", "start-apiserver-admission-initializer", "generic-apiserver-start-informers"),
    ...(fairness
      ? hook("handlers", "priority-and-fairness-config-consumer", "priority-and-fairness-filter")
      : hook("handlers", "max-in-flight-filter")),
    ...hook("handlers", "storage-object-count-tracker-hook"),
    ...(storageReadiness === true ? hook("caches", "storage-readiness") : []),
    ...hook("definitions", "start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"),
    ...hook(
      "bootstrap",
      "start-system-namespaces-controller",
      "start-cluster-authentication-info-controller",
      ...(identity
        ? ["start-kube-apiserver-identity-lease-controller", "start-kube-apiserver-identity-lease-garbage-collector"]
        : []),
      "start-legacy-token-tracking-controller",
    ),
    ...hook("services", "start-service-ip-repair-controllers"),
    ...hook("bootstrap", "rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"),
    ...(fairness ? hook("bootstrap", "priority-and-fairness-config-producer") : []),
    ...hook("bootstrap", "bootstrap-controller"),
    ...hook("services", "start-kubernetes-service-cidr-controller"),
    ...hook(
      "apis",
      "start-kube-aggregator-informers",
      "apiservice-status-local-available-controller",
      "apiservice-status-remote-available-controller",
      "apiservice-registration-controller",
      "apiservice-wait-for-first-sync",
      "apiservice-discovery-controller",
      "kube-apiserver-autoregistration",
    ),
    { name: "autoregister-completion", step: "apis" },
    ...hook("apis", "apiservice-openapi-controller", "apiservice-openapiv3-controller"),
  ];
}
