import t from "tap";
import { Reader, wireBytes, wireVarint } from "../schema/protobuf/wire.ts";
import { encodePprof } from "./pprof.ts";
import { toCpuStacks, toHeapStacks } from "./v8-profiles.ts";

type Message = Readonly<Record<number, readonly (number | Buffer)[]>>;

function fieldsOf(bytes: Uint8Array): Message {
  const reader = new Reader(bytes);
  const fields: Record<number, (number | Buffer)[]> = {};
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    const values = fields[tag >>> 3] ?? [];
    fields[tag >>> 3] = values;
    if ((tag & 7) === wireVarint) values.push(reader.int64());
    else if ((tag & 7) === wireBytes) values.push(reader.bytes(reader.end));
    else throw new Error(`Unexpected tag ${tag}`);
  }
  return fields;
}

const messages = (message: Message, field: number): readonly Message[] =>
  (message[field] ?? []).map((bytes) => fieldsOf(bytes as Buffer));

function packed(bytes: number | Buffer | undefined): number[] {
  const reader = new Reader(bytes as Buffer);
  const values: number[] = [];
  while (reader.position < reader.end) values.push(reader.int64());
  return values;
}

/** Decodes a profile as pprof shows it: types, and samples with function names. */
function shown(bytes: Buffer) {
  const profile = fieldsOf(bytes);
  const texts = (profile[6] ?? []).map(String);
  const text = (index: number | Buffer | undefined) => texts[Number(index ?? 0)];
  const functions = new Map(
    messages(profile, 5).map((one) => [one[1]?.[0], `${text(one[2]?.[0])} ${text(one[4]?.[0])}`]),
  );
  const locations = new Map(
    messages(profile, 4).map((one) => [one[1]?.[0], functions.get(messages(one, 4)[0]?.[1]?.[0])]),
  );
  return {
    first: texts[0],
    types: messages(profile, 1).map((type) => `${text(type[1]?.[0])}/${text(type[2]?.[0])}`),
    samples: messages(profile, 2).map((sample) => ({
      stack: packed(sample[1]?.[0]).map((id) => locations.get(id)),
      values: packed(sample[2]?.[0]),
    })),
    started: profile[9]?.[0],
    duration: profile[10]?.[0],
  };
}

const at = (functionName: string, lineNumber = 0) => ({
  functionName,
  scriptId: "1",
  url: "file:///srv/main.ts",
  lineNumber,
  columnNumber: 0,
});

t.test("encodePprof() writes a CPU profile that pprof reads", async (t) => {
  const nodes = [
    { id: 1, callFrame: at("(root)"), children: [2, 4] },
    { id: 2, callFrame: at("outer", 9), children: [3] },
    { id: 3, callFrame: at("") },
    { id: 4, callFrame: at("(idle)") },
  ];
  const profile = { nodes, startTime: 0, endTime: 5000, samples: [3, 3, 2, 4], timeDeltas: [1000, 1500, 900, 1600] };
  const { first, ...rest } = shown(encodePprof(toCpuStacks(profile, 1000, 1_700_000_000_123)));
  t.equal(first, "", "the first text is the empty one");
  t.same(rest, {
    types: ["samples/count", "cpu/nanoseconds"],
    samples: [
      { stack: ["outer /srv/main.ts"], values: [1, 900_000] },
      { stack: ["(anonymous) /srv/main.ts", "outer /srv/main.ts"], values: [2, 2_500_000] },
    ],
    started: 1_700_000_000_123_000_000,
    duration: 5_000_000,
  });
});

t.test("toHeapStacks() sums the allocations of each stack", async (t) => {
  const leaf = { id: 3, callFrame: at("leaf"), children: [] };
  const head = { id: 1, callFrame: at("(root)"), children: [{ id: 2, callFrame: at("outer"), children: [leaf] }] };
  const samples = [
    { size: 100, nodeId: 3 },
    { size: 24, nodeId: 3 },
    { size: 8, nodeId: 2 },
  ];
  const { types, samples: found } = toHeapStacks({ head, samples }, "alloc", 1024, { startedMs: 0, durationMs: 1 });
  t.same(
    types.map(({ type }) => type),
    ["alloc_objects", "alloc_space"],
  );
  const named = found.map(({ frames, values }) => [frames.map(({ functionName }) => functionName).join(" < "), values]);
  t.same(named, [
    ["outer", [1, 8]],
    ["leaf < outer", [2, 124]],
  ]);
});
