/** What a conformance behaviour gets: a namespace of its own in the running cluster, and helpers for pods. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import type { CommandResult, TestCluster } from "../../cluster/cluster.ts";
import { exampleImage } from "../../cluster/example-image.ts";
import { type Api, type Json, WAIT_MS } from "./api.ts";

/** Shows one behaviour; rejects when the cluster does otherwise. */
export type Behaviour = (at: TestNamespace) => Promise<void>;

/** By the names of the conformance list. */
export type Behaviours = Readonly<Record<string, Behaviour>>;

/** Kinds without a namespace. */
const clusterScoped = new Set([
  "APIService",
  "CSIDriver",
  "CSINode",
  "CertificateSigningRequest",
  "ClusterRole",
  "ClusterRoleBinding",
  "CustomResourceDefinition",
  "FlowSchema",
  "IPAddress",
  "IngressClass",
  "MutatingWebhookConfiguration",
  "Namespace",
  "Node",
  "PersistentVolume",
  "PriorityClass",
  "PriorityLevelConfiguration",
  "RuntimeClass",
  "ServiceCIDR",
  "StorageClass",
  "SubjectAccessReview",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
  "ValidatingWebhookConfiguration",
  "VolumeAttachment",
]);

/** `IPAddress` is served as `ipaddresses`. */
function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (name === "endpoints") return name;
  if (name.endsWith("s")) return `${name}es`;
  return name.endsWith("y") && !name.endsWith("ey") ? `${name.slice(0, -1)}ies` : `${name}s`;
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface PodOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** More fields of the container. */
  readonly container?: object;
  /** More fields of `spec`. */
  readonly spec?: object;
}

/** A container that runs a shell script in the example image, which has all commands as `busybox NAME`. */
export function containerOf(script: string, more: object = {}, name = "c") {
  return { name, image: exampleImage, imagePullPolicy: "IfNotPresent", command: ["sh", "-c", script], ...more };
}

/** Runs until it is stopped. */
export const PAUSE = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

export function podOf(name: string, script: string, options: PodOptions = {}) {
  const { labels, annotations, container, spec } = options;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [containerOf(script, container)],
      ...spec,
    },
  };
}

/** The pod of a workload's template. */
export function templateOf(labels: Readonly<Record<string, string>>, script: string, options: PodOptions = {}) {
  const { metadata, spec } = podOf("", script, { labels, ...options });
  const { name: _, ...rest } = metadata;
  const { restartPolicy: __, ...others } = spec;
  return { metadata: rest, spec: others };
}

export class TestNamespace {
  readonly api: Api;
  readonly name: string;
  readonly cluster: TestCluster;

  constructor(api: Api, cluster: TestCluster, name: string) {
    this.api = api;
    this.cluster = cluster;
    this.name = name;
  }

  /** The path of a collection: `pathOf("apps/v1", "Deployment")`. */
  pathOf(apiVersion: string, kind: string, name = "", namespace = this.name): string {
    const prefix = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const scope = clusterScoped.has(kind) ? "" : `/namespaces/${namespace}`;
    return `${prefix}${scope}/${pluralOf(kind)}${name === "" ? "" : `/${name}`}`;
  }

  pathOfObject({ apiVersion, kind, metadata }: KubeObject): string {
    return this.pathOf(apiVersion, kind, metadata.name);
  }

  create(object: KubeObject): Promise<Json> {
    return this.api.post(this.pathOf(object.apiVersion, object.kind), object);
  }

  get(object: KubeObject): Promise<Json> {
    return this.api.get(this.pathOfObject(object));
  }

  /** The path of an object of the core group in this namespace. */
  path(resource: string): string {
    return `/api/v1/namespaces/${this.name}/${resource}`;
  }

  pod(name: string): Promise<Json> {
    return this.api.get(this.path(`pods/${name}`));
  }

  /** Resolves with the object when `check` accepts it. */
  async wait(path: string, what: string, check: (object: Json) => unknown, timeoutMs = WAIT_MS): Promise<Json> {
    let last: Json;
    const describe = (): string => `${what} at ${path}; it has ${JSON.stringify(last?.status ?? last)}`;
    await until(
      describe,
      async () => {
        last = await this.api.get(path);
        return Boolean(check(last));
      },
      { timeoutMs },
    );
    return last;
  }

  waitForPod(name: string, what: string, check: (pod: Json) => unknown, timeoutMs = WAIT_MS): Promise<Json> {
    return this.wait(this.path(`pods/${name}`), what, check, timeoutMs);
  }

  waitReady(name: string, timeoutMs = WAIT_MS): Promise<Json> {
    return this.waitForPod(name, "a ready pod", isReady, timeoutMs);
  }

  /** Creates a pod and resolves with it when it is ready. */
  async runPod(pod: KubeObject, timeoutMs = WAIT_MS): Promise<Json> {
    await this.create(pod);
    return await this.waitReady(pod.metadata.name ?? "", timeoutMs);
  }

  /** Creates a pod and resolves with its output when it has succeeded. */
  async outputOf(pod: KubeObject, timeoutMs = WAIT_MS): Promise<string> {
    await this.create(pod);
    const name = pod.metadata.name ?? "";
    const { status } = await this.waitForPod(name, "the end of the pod", isFinished, timeoutMs);
    const output = await this.log(name);
    assert.equal(status.phase, "Succeeded", `${JSON.stringify(status)}\n${output}`);
    return output;
  }

  async log(name: string, query = ""): Promise<string> {
    return (await this.api.send(`GET ${this.path(`pods/${name}/log`)}${query === "" ? "" : `?${query}`}`)).text;
  }

  async waitForLog(name: string, pattern: RegExp, { container = "", timeoutMs = WAIT_MS } = {}): Promise<string> {
    let text = "";
    return await until(
      () => `${pattern} in the log of ${name}, which ends: ${text.slice(-500)}`,
      async () => {
        text = await this.log(name, container === "" ? "" : `container=${container}`);
        return pattern.test(text) ? text : undefined;
      },
      { timeoutMs },
    );
  }

  kubectl(args: readonly string[], input?: string): Promise<CommandResult> {
    return this.cluster.kubectl(["-n", this.name, ...args], input === undefined ? {} : { input });
  }

  /** The output of kubectl, which must succeed; the words of a string are split at blanks. */
  async run(args: string | readonly string[], input?: string): Promise<string> {
    const words = typeof args === "string" ? args.split(" ") : args;
    const { code, stdout, stderr } = await this.kubectl(words, input);
    assert.equal(code, 0, `kubectl ${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** The output of a shell script in a running container. */
  exec(pod: string, script: string, container = "c"): Promise<string> {
    return this.run(["exec", pod, "-c", container, "--", "sh", "-c", script]);
  }

  /** Rejects unless the request is refused with the status. */
  async refused(status: number, request: Promise<unknown>, message = /./): Promise<void> {
    await assert.rejects(request, (error: Error & { status?: number }) => {
      assert.equal(error.status, status, error.message);
      assert.match(error.message, message);
      return true;
    });
  }

  /** The only node of the cluster, unless others have joined. */
  async node(): Promise<Json> {
    const nodes = await this.api.list("/api/v1/nodes");
    return nodes.find(({ metadata }) => metadata.name === "e2e");
  }
}

export function isReady({ status }: Json): boolean {
  return conditionOf(status, "Ready")?.status === "True";
}

export function isFinished({ status }: Json): boolean {
  return status.phase === "Succeeded" || status.phase === "Failed";
}

export function conditionOf(status: Json, type: string): Json {
  return status?.conditions?.find((condition: Json) => condition.type === type);
}
