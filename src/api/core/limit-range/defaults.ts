import type { LimitRangeItem } from "./schema.ts";

/** A container without a limit gets the greatest; without a request, its limit or else the least. */
export function setItemDefaults(item: LimitRangeItem): LimitRangeItem {
  if (item.type !== "Container") return item;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  return {
    ...item,
    ...(Object.keys(limits).length === 0 ? {} : { default: limits }),
    ...(Object.keys(requests).length === 0 ? {} : { defaultRequest: requests }),
  };
}
