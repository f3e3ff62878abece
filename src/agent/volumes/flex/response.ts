/** The JSON that a Flex driver prints. Members of another type count as absent. */
import * as z from "zod/mini";

const text = z.catch(z.string(), "");

const response = z.pipe(
  z.object({
    status: text,
    message: text,
    device: text,
    volumeName: text,
    attached: z.catch(z.boolean(), false),
    capabilities: z.catch(z.record(z.string(), z.unknown()), {}),
  }),
  z.transform(({ attached, ...members }) => ({ ...members, isAttached: attached })),
);

export type FlexResponse = Readonly<z.infer<typeof response>>;

/** Undefined for text that is not a JSON object. */
export function parseResponse(output: string): FlexResponse | undefined {
  try {
    return response.parse(JSON.parse(output));
  } catch {
    return undefined;
  }
}
