/** Every path under which a kind is served, and what answers there. */
import type { ApiObject, Kind, Subresource, Verb } from "../../api/kind.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { kubernetesGroup, type Scheme } from "../../api/scheme.ts";
import type { HttpResponse } from "../../http/message.ts";
import type { Router } from "../../http/router.ts";
import type { Registries } from "../../registry/registries.ts";
import type { RequestContext } from "../request/request-context.ts";
import { createConnectHandler } from "./connect.ts";
import { getObject, listObjects } from "./get.ts";
import { type ReviewHandler, createReviewHandler } from "./review.ts";
import { createGetViewHandler, createPatchViewHandler, createUpdateViewHandler } from "./subresource-view.ts";
import type { ResourceHandler, ResourceSettings, ResourceTarget } from "./target.ts";
import { createObject, deleteObject, deleteObjects, createPatchHandler, createUpdateHandler } from "./delete.ts";

export type Route = (context: RequestContext, params: Readonly<Record<string, string>>) => Promise<HttpResponse>;

/** Subresources that need more than this room has: handed in by whoever owns it. */
export interface ExtraHandlers {
  readonly podLog: ResourceHandler;
  readonly bindPod: ResourceHandler;
  readonly evictPod: ResourceHandler;
  readonly requestToken: ResourceHandler;
  /** Streams and proxies, by plural and subresource: `pods/exec`. */
  readonly connect: Readonly<Record<string, ResourceHandler>>;
  readonly componentStatuses: { readonly get: ResourceHandler; readonly list: ResourceHandler };
  /** Who answers the kinds that are questions. */
  readonly reviews: Readonly<Record<string, ReviewHandler>>;
}

/** The spellings in which a group is served, the project's own first. */
export function groupNames(group: string, aliases: boolean): readonly string[] {
  const kubernetesName = kubernetesGroup(group);
  return aliases && kubernetesName !== group ? [group, kubernetesName] : [group];
}

export function addResourceRoutes(
  router: Router<Route>,
  scheme: Scheme,
  registries: Registries,
  settings: ResourceSettings,
  options: { readonly aliases: boolean; readonly extra: ExtraHandlers },
): void {
  for (const kind of scheme.kinds()) {
    for (const group of groupNames(kind.group, options.aliases)) {
      addKindRoutes(router, { kind, group, registry: registries.of(kind), settings }, options.extra);
    }
  }
}

export function addKindRoutes(router: Router<Route>, target: ResourceTarget, extra: ExtraHandlers): void {
  const { kind, group } = target;
  const base = group === "" ? `/api/${kind.version}` : `/apis/${group}/${kind.version}`;
  const collection = `${base}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}`;
  const add = (method: string, path: string, handler: ResourceHandler | undefined): void => {
    if (handler === undefined) return;
    router.add(method, path, (context, params) => {
      if (kind.deprecation !== undefined) context.warnings.push(kind.deprecation);
      return handler(target, context, params);
    });
  };
  if (!isPersisted(kind)) {
    if (kind.verbs.includes("create")) add("POST", collection, createOnlyHandler(kind, extra));
    add("GET", collection, handlerIfServed(kind, "list", extra.componentStatuses.list));
    add("GET", `${collection}/{name}`, handlerIfServed(kind, "get", extra.componentStatuses.get));
    return;
  }
  add("GET", collection, handlerIfServed(kind, "list", listObjects));
  add("POST", collection, handlerIfServed(kind, "create", createObject));
  add("DELETE", collection, handlerIfServed(kind, "deletecollection", deleteObjects));
  if (kind.namespaced) {
    add("GET", `${base}/${kind.plural}`, handlerIfServed(kind, "list", listObjects));
    add("GET", `${base}/namespaces//${kind.plural}`, handlerIfServed(kind, "list", listObjects));
  }
  const item = `${collection}/{name}`;
  add("GET", item, handlerIfServed(kind, "get", getObject));
  add("PUT", item, handlerIfServed(kind, "update", createUpdateHandler()));
  add("PATCH", item, handlerIfServed(kind, "patch", createPatchHandler()));
  add("DELETE", item, handlerIfServed(kind, "delete", deleteObject));
  const watchList = handlerIfServed(kind, "watch", listObjects);
  add("GET", collection.replace(base, `${base}/watch`), watchList);
  add("GET", item.replace(base, `${base}/watch`), watchList);
  if (kind.namespaced) add("GET", `${base}/watch/${kind.plural}`, watchList);
  for (const subresource of kind.subresources) {
    const handler = extra.connect[`${kind.plural}/${subresource.name}`];
    if (handler !== undefined && group === "") {
      const connect = createConnectHandler(subresource, handler);
      const path = `${item}/${subresource.name}`;
      const isProxy = subresource.name === "proxy";
      for (const method of isProxy ? PROXY_METHODS : ["GET", "POST"]) {
        add(method, path, connect);
        if (isProxy) add(method, `${path}/{path*}`, connect);
      }
      continue;
    }
    for (const verb of subresource.verbs) {
      add(METHODS[verb] ?? verb, `${item}/${subresource.name}`, subresourceHandler(subresource, verb, extra));
    }
  }
}

const PROXY_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

const METHODS: Partial<Record<Verb, string>> = {
  create: "POST",
  delete: "DELETE",
  get: "GET",
  patch: "PATCH",
  update: "PUT",
};

/** Throws for a question that nobody answers. */
function createOnlyHandler(kind: Kind, { bindPod, reviews }: ExtraHandlers): ResourceHandler {
  if (kind.kind === "Binding") return bindPod;
  const answer = reviews[kind.kind];
  if (answer === undefined) throw new Error(`Cannot serve ${kind.plural}: nobody answers them`);
  return createReviewHandler(answer);
}

function handlerIfServed<T extends ApiObject>(
  kind: Kind<T>,
  verb: Verb,
  handler: ResourceHandler,
): ResourceHandler | undefined {
  return kind.verbs.includes(verb) ? handler : undefined;
}

/** Throws for a subresource that a kind declares and nobody serves. */
function subresourceHandler(
  { name, strategy: part, view }: Subresource,
  verb: Verb,
  extra: ExtraHandlers,
): ResourceHandler {
  if (part !== undefined && verb === "get") return getObject;
  if (part !== undefined && verb === "update") return createUpdateHandler(part);
  if (part !== undefined && verb === "patch") return createPatchHandler(part);
  if (view !== undefined && verb === "get") return createGetViewHandler(view);
  if (view !== undefined && verb === "update") return createUpdateViewHandler(view);
  if (view !== undefined && verb === "patch") return createPatchViewHandler(view);
  switch (`${verb} ${name}`) {
    case "create binding":
      return extra.bindPod;
    case "create eviction":
      return extra.evictPod;
    case "create token":
      return extra.requestToken;
    case "get log":
      return extra.podLog;
    default:
      throw new Error(`Cannot serve subresource ${name}: there is no handler for ${verb}`);
  }
}
