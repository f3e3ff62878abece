/** Pods that cost an agent the most, each near a limit of the API server: 1.5 MiB, 200,000 values. */
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { ApiObject } from "../../api/kind.ts";

interface HostileObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly data: Readonly<Record<string, string>>;
  readonly metadata: Record<string, unknown>;
}

export interface HostilePod {
  readonly what: string;
  /** By path: what the pod uses. */
  readonly objects?: Readonly<Record<string, HostileObject>>;
  readonly spec?: Partial<PodSpec>;
  readonly metadata?: ApiObject["metadata"];
}

const MIB = 2 ** 20;

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function entries(count: number, make: (index: number) => string): Record<string, string> {
  return Object.fromEntries(times(count, (index) => [`k${index}`, make(index)]));
}

function configMap(name: string, data: Readonly<Record<string, string>>): Readonly<Record<string, HostileObject>> {
  const path = `/api/v1/namespaces/default/configmaps/${name}`;
  return { [path]: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" }, data } };
}

function container(name: string) {
  return { name, image: "busybox:1", imagePullPolicy: "IfNotPresent" as const };
}

export function hostilePods(): readonly HostilePod[] {
  const large = times(500, (index) => configMap(`large${index}`, { key: "x".repeat(MIB - 100) }));
  return [
    { what: "6,000 emptyDirs", spec: { volumes: times(6000, (index) => ({ name: `v${index}`, emptyDir: {} })) } },
    {
      what: "ConfigMap of 45,000 keys",
      objects: configMap(
        "keys",
        entries(45_000, () => "x"),
      ),
      spec: { volumes: [{ name: "v", configMap: { name: "keys" } }] },
    },
    {
      what: "500 ConfigMaps of 1 MiB",
      objects: Object.fromEntries(large.flatMap((each) => Object.entries(each))),
      spec: { volumes: times(500, (index) => ({ name: `v${index}`, configMap: { name: `large${index}` } })) },
    },
    {
      what: "24,000 annotations in a volume",
      metadata: { annotations: entries(24_000, () => "x") },
      spec: {
        volumes: [
          { name: "v", downwardAPI: { items: [{ path: "a", fieldRef: { fieldPath: "metadata.annotations" } }] } },
        ],
      },
    },
    {
      what: "8,000 files of annotations",
      metadata: { annotations: entries(1_000, () => "x".repeat(200)) },
      spec: {
        volumes: [
          {
            name: "v",
            downwardAPI: {
              items: times(8000, (index) => ({ path: `a${index}`, fieldRef: { fieldPath: "metadata.annotations" } })),
            },
          },
        ],
      },
    },
    {
      what: "projected volume of 8,000 sources",
      objects: configMap(
        "small",
        entries(10, () => "x"),
      ),
      spec: {
        volumes: [
          {
            name: "v",
            projected: {
              sources: times(8000, (index) => ({
                configMap: { name: "small", items: [{ key: "k1", path: `f${index}` }] },
              })),
            },
          },
        ],
      },
    },
    {
      what: "one ConfigMap of 1 MiB in 400 files",
      objects: configMap("one", { k0: "x".repeat(MIB - 100) }),
      spec: {
        volumes: [
          {
            name: "v",
            configMap: { name: "one", items: times(400, (index) => ({ key: "k0", path: `f${index}` })) },
          },
        ],
      },
    },
    {
      what: "20,000 variables of a ConfigMap",
      objects: configMap(
        "variables",
        entries(20_000, () => "x"),
      ),
      spec: {
        containers: times(5, (index) => ({
          ...container(`c${index}`),
          envFrom: [{ configMapRef: { name: "variables" } }],
        })),
      },
    },
    {
      what: "8,000 variables that refer to others",
      spec: {
        containers: [
          {
            ...container("c"),
            env: times(8000, (index) => ({ name: `V${index}`, value: index === 0 ? "x" : `$(V${index >> 1})x` })),
          },
        ],
      },
    },
    { what: "1,000 containers", spec: { containers: times(1000, (index) => container(`c${index}`)) } },
    {
      what: "8,000 host aliases",
      spec: { hostAliases: times(8000, (index) => ({ ip: `192.0.2.${index % 250}`, hostnames: [`h${index}`] })) },
    },
    {
      what: "8,000 pull secrets",
      spec: { imagePullSecrets: times(8000, (index) => ({ name: `s${index}` })) },
    },
    {
      what: "10,000 tolerations",
      spec: { tolerations: times(10_000, (index) => ({ key: `k${index}`, operator: "Exists" })) },
    },
    {
      what: "100 containers with two probes each",
      spec: {
        containers: times(100, (index) => ({
          ...container(`c${index}`),
          resources: { requests: { cpu: "1m", memory: "1Ki" }, limits: { cpu: "2m", memory: "16Mi" } },
          livenessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
          readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
        })),
      },
    },
  ];
}
