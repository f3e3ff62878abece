/** `kubectl get componentstatuses`: the health of the control plane's components in this process. */
import { componentStatusKind } from "../../api/core/component-status/kind.ts";
import type { ComponentCondition, ComponentStatus } from "../../api/core/component-status/schema.ts";
import {
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from "../../api/meta/selectors/selector.ts";
import { notFound } from "../../api/status.ts";
import type { Revision } from "../../storage/store.ts";
import { EncodedObject } from "../../storage/watch/encoded-object.ts";
import { parseListQuery } from "../handlers/query.ts";
import { type ResourceHandler, responseOptionsOf } from "../handlers/target.ts";
import { listResponse, objectResponse } from "../responses/object-response.ts";
import { encodeObject } from "../responses/type-meta.ts";

export interface ComponentStatuses {
  readonly get: ResourceHandler;
  readonly list: ResourceHandler;
}

/** Checks by Kubernetes' component names. A check rejects when the component is unhealthy. */
export type ComponentChecks = Readonly<Record<string, () => Promise<void>>>;

export function componentStatuses(checks: ComponentChecks): ComponentStatuses {
  const names = Object.keys(checks).sort();
  return {
    get: async (target, context, params) => {
      const responseOptions = responseOptionsOf(target, context, "object");
      const name = params.name ?? "";
      const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
      if (check === undefined) throw notFound({ group: "", resource: componentStatusKind.singular, name });
      return objectResponse(200, componentStatusKind, encodedRow(await componentStatus(name, check)), responseOptions);
    },
    list: async (target, context) => {
      const responseOptions = responseOptionsOf(target, context, "list");
      const { labelSelector = "", fieldSelector = "" } = parseListQuery(context.info.query);
      const labels = parseLabelSelector(labelSelector);
      const fields = parseFieldSelector(fieldSelector, componentStatusKind);
      const objects = await Promise.all(names.map((name) => componentStatus(name, checks[name]!)));
      const selected = objects.filter(
        (object) => matchesLabels(labels, undefined) && matchesFields(fields, object, componentStatusKind),
      );
      const revision = 0 as Revision;
      const items = selected.map((object) => new EncodedObject(componentStatusKind, "", object, revision));
      return listResponse(componentStatusKind, { items, revision }, responseOptions);
    },
  };
}

async function componentStatus(name: string, check: () => Promise<void>): Promise<ComponentStatus> {
  const condition: ComponentCondition = await check().then(
    () => ({ type: "Healthy", status: "True", message: "ok" }),
    (error: unknown) => ({
      type: "Healthy",
      status: "False",
      error: error instanceof Error ? error.message : String(error),
    }),
  );
  return { metadata: { name }, conditions: [condition] };
}

function encodedRow(object: ComponentStatus) {
  return { object, bytes: encodeObject(componentStatusKind, object) };
}
