import type { ClusterCache } from "../../cache/cluster-cache.ts";
import { MAX_NODE_SCORE, type Plugin } from "../../framework/plugin.ts";

const MIB = 1024 * 1024;
/** Images of less than this in total do not count; a container's images of more than the maximum count the same. */
const MIN_BYTES = 23 * MIB;
const MAX_BYTES_PER_CONTAINER = 1000 * MIB;

/** Prefers nodes that have the images of the pod. An image counts the more, the more nodes have it. */
export function createImageLocality(cache: ClusterCache): Plugin {
  return {
    name: "ImageLocality",
    points: ["score"],
    preScore({ pod: { pod } }) {
      const { containers = [], initContainers = [], volumes = [] } = pod.spec ?? {};
      const images = [
        ...[...initContainers, ...containers].map(({ image = "" }) => image),
        ...volumes.flatMap(({ image }) => (image === undefined ? [] : [image.reference ?? ""])),
      ].map(normalizedName);
      const nodeCount = cache.nodes().length;
      const maxBytes = MAX_BYTES_PER_CONTAINER * images.length;
      return {
        score({ imageSizes }) {
          if (imageSizes.size === 0) return 0;
          let sum = 0;
          for (const image of images) {
            const known = imageSizes.has(image) ? cache.image(image) : undefined;
            if (known !== undefined) sum += Math.trunc(known.size * (known.nodes / nodeCount));
          }
          const bounded = Math.min(Math.max(sum, MIN_BYTES), maxBytes);
          return Math.trunc((MAX_NODE_SCORE * (bounded - MIN_BYTES)) / (maxBytes - MIN_BYTES));
        },
      };
    },
  };
}

/** Adds the tag `latest` to a name without a tag. */
function normalizedName(name: string): string {
  return name.lastIndexOf(":") <= name.lastIndexOf("/") ? `${name}:latest` : name;
}
