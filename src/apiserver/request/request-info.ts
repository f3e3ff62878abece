/** RequestInfo: verb, resource and name of a request, parsed from its method, path and query. */
import type { HttpRequest } from "../../http/message.ts";
import { percentDecode } from "../../std/percent-decode.ts";

export interface RequestInfo {
  readonly isResourceRequest: boolean;
  /** Percent-decoded. */
  readonly path: string;
  /** `get`, `list`, `watch`, `create`, … for resources; the method in lower case for other paths. */
  readonly verb: string;
  /** As written in the path: `apps`, or a group alias such as `rbac.authorization.svc.io`; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly query: URLSearchParams;
  /** Whether the deprecated path, and not the query, makes a list a watch. */
  readonly isLegacyWatch?: boolean;
  /** The path of a deprecated verb, without a resource. */
  readonly isMalformed?: true;
}

const VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** Subresources of a namespace, which a path would otherwise read as resources in it. */
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(["status", "finalize"]);

export function parseRequestInfo(request: Pick<HttpRequest, "method" | "path" | "query">): RequestInfo {
  const { method } = request;
  const path = percentDecode(request.path);
  const query = parseQuery(request.query);
  const parts = splitPath(path);
  const prefix = parts.shift();
  const group = prefix === "apis" ? parts.shift() : "";
  const version = parts.shift();
  if ((prefix !== "api" && prefix !== "apis") || group === undefined || version === undefined || parts.length === 0) {
    const none = { group: "", version: "", namespace: "", resource: "", subresource: "", name: "" };
    return { isResourceRequest: false, path, verb: method.toLowerCase(), ...none, query };
  }
  const isMalformed = parts.length === 1 && (parts[0] === "watch" || parts[0] === "proxy");
  const { verb, namespace, resource, subresource, name, isLegacyWatch } = resourceInfo(method, parts, query);
  const target = { group, version, namespace, resource, subresource, name };
  return {
    isResourceRequest: true,
    path,
    verb,
    ...target,
    query,
    ...(isLegacyWatch ? { isLegacyWatch } : {}),
    ...(isMalformed ? { isMalformed } : {}),
  };
}

/** Empty segments within the path stay: they are empty names, and `/namespaces//pods` is a path of all namespaces. */
function splitPath(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (path[start] === "/") start++;
  while (end > start && path[end - 1] === "/") end--;
  return start === end ? [] : path.slice(start, end).split("/");
}

type ResourceInfo = Pick<RequestInfo, "verb" | "namespace" | "resource" | "name" | "subresource" | "isLegacyWatch">;

function resourceInfo(method: string, path: readonly string[], query: URLSearchParams): ResourceInfo {
  // The deprecated paths `/api/v1/watch/…` and `/api/v1/proxy/…`, of which the latter has no handler any more.
  const prefix = path.length > 1 && (path[0] === "watch" || path[0] === "proxy") ? path[0] : undefined;
  const isLegacyWatch = method === "GET" && prefix === "watch";
  const parts = prefix === undefined ? path : path.slice(1);
  let rest = parts;
  let namespace = "";
  if (parts[0] === "namespaces" && parts.length > 1) {
    namespace = parts[1] ?? "";
    if (parts.length > 2 && !NAMESPACE_SUBRESOURCES.has(parts[2] ?? "")) rest = parts.slice(2);
  }
  const [resource = "", name = "", subresource = ""] = rest;
  if (prefix === "proxy") return { verb: prefix, namespace, resource, name, subresource: "" };
  const verb = VERBS[method] ?? "";
  if (prefix === "watch" && !isLegacyWatch) return { verb: prefix, namespace, resource, name, subresource };
  const isForced = isLegacyWatch && !isTrue(query.get("watch"));
  if (isLegacyWatch) rewriteLegacyWatch(query, name);
  else if (name !== "") return { verb, namespace, resource, name, subresource };
  if (verb === "delete") return { verb: "deletecollection", namespace, resource, name, subresource };
  if (verb !== "get") return { verb, namespace, resource, name, subresource };
  const exactName = selectedName(query.get("fieldSelector") ?? "");
  const verbOfList = isTrue(query.get("watch")) ? "watch" : "list";
  const info = { verb: verbOfList, namespace, resource, name: exactName, subresource };
  return isForced ? { ...info, isLegacyWatch: true } : info;
}

/** Rewrites the deprecated path `/api/v1/watch/pods/web` to the query parameters of a list. */
function rewriteLegacyWatch(query: URLSearchParams, name: string): void {
  query.set("watch", "true");
  if (name === "") return;
  const selector = query.get("fieldSelector") ?? "";
  query.set("fieldSelector", `metadata.name=${name}${selector === "" ? "" : `,${selector}`}`);
}

/** The name in the field selector `metadata.name=x`: authorization treats such a list as a request for one object. */
function selectedName(selector: string): string {
  for (const term of selector.split(",")) {
    const match = /^metadata\.name==?([^=].*)$/.exec(term.trim());
    if (match !== null) return match[1] ?? "";
  }
  return "";
}

/** Drops parameters with a semicolon or an invalid percent escape, as Go's `url.ParseQuery` does. */
function parseQuery(text: string): URLSearchParams {
  if (!/[;%]/.test(text)) return new URLSearchParams(text);
  const valid = text.split("&").filter((part) => !/;|%(?![0-9a-f]{2})/i.test(part));
  return new URLSearchParams(valid.join("&"));
}

/** Parses a boolean query parameter as Kubernetes does: every value except `false`, in any case, and `0` is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value.toLowerCase() !== "false" && value !== "0";
}

/** Kubernetes' scope of a request: `resource` for one object, `namespace`, `cluster`, or empty for other paths. */
export function requestScope(info: RequestInfo): "resource" | "namespace" | "cluster" | "" {
  if (!info.isResourceRequest) return "";
  if (info.name !== "" || info.verb === "create") return "resource";
  return info.namespace === "" ? "cluster" : "namespace";
}

const STREAMING_SUBRESOURCES: ReadonlySet<string> = new Set([
  "attach",
  "exec",
  "log",
  "portforward",
  "proxy",
  "tunnel",
]);

/** Long-running requests have no deadline and do not count against the in-flight limits. */
export function isLongRunning(info: RequestInfo): boolean {
  if (!info.isResourceRequest) return info.path.startsWith("/debug/pprof/");
  return info.verb === "watch" || info.verb === "proxy" || STREAMING_SUBRESOURCES.has(info.subresource);
}
