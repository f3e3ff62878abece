import { create } from "../../registry/create.ts";
import { addEvent } from "../../tracing/span.ts";
import { logCreatedName } from "../filters/request-log.ts";
import { writtenResponse } from "../responses/object-response.ts";
import { readObjectBody } from "./body.ts";
import { fieldManagerOptions } from "./field-manager.ts";
import { expectedBodyOf, type ResourceHandler, responseOptionsOf, scopeOf } from "./target.ts";
import { warningAppender, writeChecks } from "./write-options.ts";

/** POST of an object. */
export const createObject: ResourceHandler = async (target, context, params) => {
  const responseOptions = responseOptionsOf(target, context, "object");
  const { object: sent, dryRun, fieldManager } = await readObjectBody(context, expectedBodyOf(target), "CreateOptions");
  const warn = warningAppender(context);
  const options = {
    dryRun,
    warn,
    ...fieldManagerOptions(context, fieldManager),
    ...writeChecks(target, context, params, dryRun),
  };
  addEvent("About to store object in database");
  const object = await create(target.registry, scopeOf(target, context, params), sent, options);
  addEvent("Write to database call succeeded");
  logCreatedName(context.request, object.metadata?.name);
  return writtenResponse(201, target.kind, object, responseOptions);
};
