import { get } from "../../registry/get.ts";
import { list } from "../../registry/list.ts";
import { addEvent } from "../../tracing/span.ts";
import { isTrue } from "../request/request-info.ts";
import { listResponse, objectResponse } from "../responses/object-response.ts";
import { parseListQuery } from "./query.ts";
import { type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { watchObjects } from "./watch.ts";

export const getObject: ResourceHandler = async (target, context, params) => {
  const responseOptions = responseOptionsOf(target, context, "object");
  const version = context.info.query.get("resourceVersion") ?? undefined;
  addEvent("About to Get from storage");
  const found = await get(target.registry, scopeOf(target, context, params), params.name ?? "", version);
  addEvent("About to write a response");
  return objectResponse(200, target.kind, found, responseOptions);
};

export const listObjects: ResourceHandler = async (target, context, params) => {
  if (isTrue(context.info.query.get("watch"))) return await watchObjects(target, context, params);
  const responseOptions = responseOptionsOf(target, context, "list");
  addEvent("About to List from storage");
  const page = await list(target.registry, scopeOf(target, context, params), parseListQuery(context.info.query));
  addEvent("Listing from storage done", { count: page.items.length });
  return listResponse(target.kind, page, responseOptions);
};
