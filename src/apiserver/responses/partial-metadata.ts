import { objectMeta } from "../../api/meta/object-meta.ts";
import { object, optional } from "../../schema/define.ts";

/** What every object has in common, for clients that want no more. */
export const partialObjectMetadata = object("meta/v1.PartialObjectMetadata", { metadata: optional(1, objectMeta) });
