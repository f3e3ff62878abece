/** The columns and the selectable fields of custom resources. */
import { type JsonPath, PathBudget, parseJsonPath, printValue } from "../../../schema/json/json-path.ts";
import { formatInstant, parseInstant } from "../../../schema/value/time.ts";
import { ageColumn, nameColumn } from "../../columns/columns.ts";
import { formatAge } from "../../columns/human-duration.ts";
import type { ApiObject, Column, FieldSelectorValue } from "../../kind.ts";
import type { CustomResourceColumnDefinition, SelectableField } from "../custom-resource-definition/schema.ts";

export function createCustomColumns(
  definitions: readonly CustomResourceColumnDefinition[] | undefined,
): readonly Column<ApiObject>[] {
  if (definitions === undefined || definitions.length === 0) return [nameColumn, { ...ageColumn, type: "date" }];
  let budget = new PathBudget(ROW_VALUES_MAX);
  // The cells of a row are created one after the other, this one first.
  const renew = (): PathBudget => {
    budget = new PathBudget(ROW_VALUES_MAX);
    return budget;
  };
  const columns = definitions.map((definition, i) => createCustomColumn(definition, i === 0 ? renew : () => budget));
  return [nameColumn, ...columns];
}

/** The values that the paths of all columns visit in an object; the cells of further columns are empty. */
const ROW_VALUES_MAX = 200_000;

function createCustomColumn(definition: CustomResourceColumnDefinition, budgetOf: () => PathBudget): Column<ApiObject> {
  const { name, type, format = "", description = "", priority = 0, jsonPath } = definition;
  const path = parseColumnPath(jsonPath);
  return {
    name,
    type: type as Column<ApiObject>["type"],
    format,
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    priority,
    cell: (object, now) => cellOf(type, path?.find(object, budgetOf())[0], now),
  };
}

/** An unsupported path finds nothing; stored definitions may have one. */
function parseColumnPath(jsonPath: string): JsonPath | undefined {
  try {
    return parseJsonPath(jsonPath);
  } catch {
    return undefined;
  }
}

/** A value of another type than the column's is not shown. */
function cellOf(type: string, value: unknown, now: number): string | number | boolean | null {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "string":
      return printValue(value);
    case "integer":
      return typeof value === "number" || typeof value === "bigint" ? Math.trunc(Number(value)) : null;
    case "number":
      return typeof value === "number" || typeof value === "bigint" ? Number(value) : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? formatDateAge(value, now) : null;
    default:
      return null;
  }
}

function formatDateAge(text: string, now: number): string {
  const instant = parseInstant(text);
  return instant === undefined ? "<invalid>" : formatAge(formatInstant(instant, false), now);
}

export function createSelectableFields(
  fields: readonly SelectableField[] | undefined,
): Readonly<Record<string, FieldSelectorValue<ApiObject>>> {
  return Object.fromEntries(
    (fields ?? []).flatMap(({ jsonPath }) => {
      const path = parseColumnPath(jsonPath);
      if (path === undefined) return [];
      return [[jsonPath.replace(/^\./, ""), (object: ApiObject) => fieldText(path.find(object)[0])] as const];
    }),
  );
}

function fieldText(value: unknown): string {
  return value === undefined || value === null ? "" : printValue(value);
}
