import { objectMeta } from "../../api/meta/object-meta.ts";
import { object, optional } from "../../schema/define.ts";

/** The schema of PartialObjectMetadata. */
export const partialObjectMetadata = object("meta/v1.PartialObjectMetadata", { metadata: optional(1, objectMeta) });
