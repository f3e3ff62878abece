/** The routes of a kind: the paths and methods of its verbs and subresources. */
import { type GroupAliases, groupNames } from "../../api/group-aliases.ts";
import { type ApiObject, type Kind, removedRelease, type Subresource, type Verb } from "../../api/kind.ts";
import { isPersisted } from "../../api/review-kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import { badRequest } from "../../api/status.ts";
import type { HttpResponse } from "../../http/message.ts";
import type { Router } from "../../http/router.ts";
import type { Registries } from "../../registry/registries.ts";
import type { RequestContext } from "../request/request-context.ts";
import { type ConnectHandler, createConnectHandler } from "./connect.ts";
import { createObject } from "./create.ts";
import { createDeleteHandler, type DeleteFunction, deleteObjects } from "./delete.ts";
import { getObject, listObjects } from "./get.ts";
import { createPatchHandler } from "./patch.ts";
import { createGetViewHandler, createPatchViewHandler, createUpdateViewHandler } from "./subresource-view.ts";
import type { ResourceHandler, ResourceSettings, ResourceTarget } from "./target.ts";
import { createUpdateHandler } from "./update.ts";

export type Route = (context: RequestContext, params: Readonly<Record<string, string>>) => Promise<HttpResponse>;

/** Handlers that differ from those of the verbs: data of the resources that need more than their registry. */
export interface ExtraHandlers {
  /** By verb, resource and subresource: `create pods/eviction`. */
  readonly subresources: Readonly<Record<string, ResourceHandler>>;
  /** Streams and proxies of the core group, by resource and subresource: `pods/exec`. */
  readonly connect: Readonly<Record<string, ConnectHandler>>;
  /** Of kinds that are not stored, by verb and kind: `create TokenReview`. */
  readonly notStored: Readonly<Record<string, ResourceHandler>>;
  /** Deletions of single objects of the core group, by resource: `namespaces`. */
  readonly deletions: Readonly<Record<string, DeleteFunction>>;
}

export function addResourceRoutes(
  router: Router<Route>,
  scheme: Scheme,
  registries: Registries,
  settings: ResourceSettings,
  options: { readonly aliases: GroupAliases; readonly extra: ExtraHandlers },
): void {
  for (const kind of scheme.kinds()) {
    for (const group of groupNames(kind.group, options.aliases)) {
      const target = { kind: scheme.published(kind), group, registry: registries.of(kind), settings };
      addKindRoutes(router, target, options.extra);
    }
  }
}

/** In a warning, and in the audit log. */
function reportDeprecation(kind: Kind, warning: string, { warnings, annotations }: RequestContext): void {
  warnings.push(warning);
  annotations.add("k8s.io/deprecated", "true");
  const release = removedRelease(kind);
  if (release !== "") annotations.add("k8s.io/removed-release", release);
}

export function addKindRoutes(router: Router<Route>, target: ResourceTarget, extra: ExtraHandlers): void {
  const { kind, group } = target;
  const base = group === "" ? `/api/${kind.version}` : `/apis/${group}/${kind.version}`;
  const collection = `${base}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}`;
  const add = (method: string, path: string, handler: ResourceHandler | undefined): void => {
    if (handler === undefined) return;
    router.add(method, path, (context, params) => {
      if (params.name === "") return Promise.reject(badRequest("name must be provided"));
      if (kind.deprecation !== undefined) reportDeprecation(kind, kind.deprecation, context);
      return handler(target, context, params);
    });
  };
  if (!isPersisted(kind)) {
    add("POST", collection, notStoredHandler(kind, "create", extra));
    add("GET", collection, notStoredHandler(kind, "list", extra));
    add("GET", `${collection}/{name}`, notStoredHandler(kind, "get", extra));
    if (kind.namespaced) add("GET", `${base}/${kind.plural}`, notStoredHandler(kind, "list", extra));
    return;
  }
  add("GET", collection, handlerIfServed(kind, "list", listObjects));
  add("POST", collection, handlerIfServed(kind, "create", createObject));
  add("DELETE", collection, handlerIfServed(kind, "deletecollection", deleteObjects));
  if (kind.namespaced) {
    add("GET", `${base}/${kind.plural}`, handlerIfServed(kind, "list", listObjects));
  }
  const item = `${collection}/{name}`;
  add("GET", item, handlerIfServed(kind, "get", getObject));
  add("PUT", item, handlerIfServed(kind, "update", createUpdateHandler()));
  add("PATCH", item, handlerIfServed(kind, "patch", createPatchHandler()));
  const deleteFunction = kind.group === "" ? extra.deletions[kind.plural] : undefined;
  add("DELETE", item, handlerIfServed(kind, "delete", createDeleteHandler(deleteFunction)));
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
      add(METHODS[verb] ?? verb, `${item}/${subresource.name}`, subresourceHandler(kind, subresource, verb, extra));
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

/** Throws for a verb that a kind declares and that has no handler. */
function notStoredHandler(kind: Kind, verb: Verb, { notStored }: ExtraHandlers): ResourceHandler | undefined {
  if (!kind.verbs.includes(verb)) return undefined;
  const handler = notStored[`${verb} ${kind.kind}`];
  if (handler === undefined) throw new Error(`Cannot serve ${kind.plural}: there is no handler for ${verb}`);
  return handler;
}

function handlerIfServed<T extends ApiObject>(
  kind: Kind<T>,
  verb: Verb,
  handler: ResourceHandler,
): ResourceHandler | undefined {
  return kind.verbs.includes(verb) ? handler : undefined;
}

/** Throws for a subresource that a kind declares and that has no handler. */
function subresourceHandler(
  { plural }: Kind,
  { name, strategy, view }: Subresource,
  verb: Verb,
  extra: ExtraHandlers,
): ResourceHandler {
  if (strategy !== undefined && verb === "get") return getObject;
  if (strategy !== undefined && verb === "update") return createUpdateHandler(strategy);
  if (strategy !== undefined && verb === "patch") return createPatchHandler(strategy);
  if (view !== undefined && verb === "get") return createGetViewHandler(view);
  if (view !== undefined && verb === "update") return createUpdateViewHandler(view);
  if (view !== undefined && verb === "patch") return createPatchViewHandler(view);
  const handler = extra.subresources[`${verb} ${plural}/${name}`];
  if (handler === undefined) throw new Error(`Cannot serve ${plural}/${name}: there is no handler for ${verb}`);
  return handler;
}
