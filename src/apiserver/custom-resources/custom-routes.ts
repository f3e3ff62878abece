/** Handles requests for custom resources: each kind has its own router, created on first request. */
import type { AdmissionPlugin } from "../../admission/chain/plugin.ts";
import { type GroupAliases, groupNames } from "../../api/group-aliases.ts";
import { notFound, StatusError } from "../../api/status.ts";
import type { HttpResponse } from "../../http/message.ts";
import { parseMediaType } from "../../http/negotiate.ts";
import { Router } from "../../http/router.ts";
import type { Revision } from "../../storage/store.ts";
import { unsupportedBody } from "../handlers/body.ts";
import { addKindRoutes, type ExtraHandlers, type Route } from "../handlers/routes.ts";
import type { ResourceSettings } from "../handlers/target.ts";
import type { RequestContext } from "../request/request-context.ts";
import type { CustomResources } from "./custom-resources.ts";
import type { ServedKind } from "./served-kind.ts";

export interface CustomResourceHandlerOptions {
  readonly customResources: CustomResources;
  readonly settings: ResourceSettings;
  readonly groupAliases: GroupAliases;
  readonly extraHandlers: ExtraHandlers;
}

const ANY_REVISION = 0 as Revision;

/** Resolves with undefined for paths of no custom resource. */
export type CustomResourceHandler = (context: RequestContext) => Promise<HttpResponse | undefined>;

export function createCustomResourceHandler(options: CustomResourceHandlerOptions): CustomResourceHandler {
  const routers = new WeakMap<ServedKind, Router<Route>>();
  const routerOf = (served: ServedKind): Router<Route> => {
    let router = routers.get(served);
    if (router === undefined) {
      router = createKindRouter(served, options);
      routers.set(served, router);
    }
    return router;
  };
  return async (context) => {
    const { info, request } = context;
    if (!info.isResourceRequest) return undefined;
    const served = options.customResources.find(info.group, info.version, info.resource);
    if (served === undefined) return undefined;
    return await served.runRequest(async () => {
      const match = routerOf(served).match(request.method, request.path);
      if (match === undefined) return handleUnmatched(served, context);
      // Unlike the built-in kinds, `/namespaces//foos` is not a path of all namespaces.
      if ("value" in match && match.params.namespace === "" && info.verb !== "list") return undefined;
      if (!("value" in match)) throw methodNotSupported(served, context);
      checkBody(context);
      // The cache is ready before the first write, so that its history contains that write.
      const { cache } = served.registry;
      if (!cache.hasReached(ANY_REVISION)) await cache.waitFor(ANY_REVISION, context.signal);
      return await match.value(context, match.params);
    });
  };
}

function createKindRouter(
  served: ServedKind,
  { settings, groupAliases, extraHandlers }: CustomResourceHandlerOptions,
): Router<Route> {
  const { kind, registry } = served;
  const router = new Router<Route>();
  const retiringSettings: ResourceSettings = {
    ...settings,
    stopping: AbortSignal.any([settings.stopping, served.retired]),
    admission: settings.admission.withGuard(refuseWhileTerminating(served)),
  };
  for (const group of groupNames(kind.group, groupAliases)) {
    addKindRoutes(router, { kind, group, registry, settings: retiringSettings }, extraHandlers);
  }
  return router;
}

function refuseWhileTerminating(served: ServedKind): AdmissionPlugin {
  return {
    name: "CustomResourceDefinition",
    handles: ({ operation, subresource }) => operation === "CREATE" && subresource === "",
    mutate({ group }) {
      if (!served.state.terminating) return undefined;
      const message = "create not allowed while custom resource definition is terminating";
      throw new StatusError(405, "MethodNotAllowed", message, { details: { group, kind: served.kind.plural } });
    },
  };
}

/** Undefined for paths of another scope; throws a 404 for unknown subresources. */
function handleUnmatched({ kind }: ServedKind, { info }: RequestContext): undefined {
  if (info.subresource === "" || (info.namespace !== "") !== kind.namespaced) return undefined;
  throw notFound({ group: info.group, resource: kind.plural, name: info.name });
}

function methodNotSupported({ kind }: ServedKind, { info }: RequestContext): StatusError {
  const resource = `${kind.plural}.${info.group}`;
  const message = `${info.verb} is not supported on resources of kind ${JSON.stringify(resource)}`;
  return new StatusError(405, "MethodNotAllowed", message, { details: { group: info.group, kind: kind.plural } });
}

const PATCH_TYPES = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const BODY_TYPES = ["application/json", "application/yaml"];

/** Throws a 415 for protobuf bodies and strategic merge patches, which custom resources do not support. */
function checkBody({ info, request }: RequestContext): void {
  const header = request.headers["content-type"] ?? "";
  // Parameters of patches are ignored, malformed ones too.
  if (request.method === "PATCH" && !PATCH_TYPES.includes(header.split(";", 1)[0]!)) throw unsupportedBody(PATCH_TYPES);
  const isWholeObject = (request.method === "POST" || request.method === "PUT") && info.subresource !== "scale";
  if (isWholeObject && parseMediaType(header)?.type.endsWith(".protobuf") === true) throw unsupportedBody(BODY_TYPES);
}
