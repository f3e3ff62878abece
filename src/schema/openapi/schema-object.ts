/** An OpenAPI schema object as plain JSON. */
export type OpenApiSchema = Readonly<Record<string, unknown>>;

/**
 * Version 2 refers to `#/definitions/`; version 3 to `#/components/schemas/` and carries defaults beside references.
 */
export type OpenApiVersion = 2 | 3;
