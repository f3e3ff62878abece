/** What the server needs of an APIService object. */
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { compareVersions } from "../../api/version-order.ts";

/** The service of an extension server. */
export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** A group version that an APIService object registers. */
export interface RegisteredApi {
  /** `v1beta1.metrics.example.com` */
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  /** Undefined: this server itself serves the group version. */
  readonly service: ServiceReference | undefined;
  /** The condition Available. */
  readonly isAvailable: boolean;
  readonly insecureSkipTlsVerify: boolean;
  /** PEM; empty: the certificate is verified with the system's authorities. */
  readonly caBundle: string;
}

/** A registered API of an extension server. */
export interface ExtensionApi extends RegisteredApi {
  readonly service: ServiceReference;
}

/** The port of a service reference that specifies none. */
const DEFAULT_PORT = 443;

export function toRegisteredApi({ metadata, spec, status }: APIService): RegisteredApi {
  const { service } = spec ?? {};
  return {
    name: metadata?.name ?? "",
    group: spec?.group ?? "",
    version: spec?.version ?? "",
    groupPriority: spec?.groupPriorityMinimum ?? 0,
    versionPriority: spec?.versionPriority ?? 0,
    service:
      service === undefined
        ? undefined
        : { namespace: service.namespace ?? "", name: service.name ?? "", port: service.port ?? DEFAULT_PORT },
    isAvailable: status?.conditions?.some(({ type, status }) => type === "Available" && status === "True") === true,
    insecureSkipTlsVerify: spec?.insecureSkipTLSVerify === true,
    caBundle: Buffer.from(spec?.caBundle ?? "", "base64").toString("latin1"),
  };
}

export function isExtensionApi(api: RegisteredApi): api is ExtensionApi {
  return api.service !== undefined;
}

/** The path of the group version. */
export function pathOf({ group, version }: Pick<RegisteredApi, "group" | "version">): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/** `default/metrics:443`, the key of what is cached by service. */
export function serviceKey({ namespace, name, port }: ServiceReference): string {
  return `${namespace}/${name}:${port}`;
}

/** The order of versions within a group: the highest priority first, then as Kubernetes orders versions. */
export function compareVersionPriority(
  a: Pick<RegisteredApi, "version" | "versionPriority">,
  b: Pick<RegisteredApi, "version" | "versionPriority">,
): number {
  return b.versionPriority - a.versionPriority || compareVersions(a.version, b.version);
}
