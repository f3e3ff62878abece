/** Options of the topology manager's policies. */

export interface TopologyOptions {
  readonly prefersClosest: boolean;
  readonly nodesMax: number;
}

export interface OptionGates {
  readonly alpha: boolean;
  readonly beta: boolean;
}

/** Options of each stage of the release. */
const STAGES: Readonly<Record<string, keyof OptionGates | "stable">> = {
  "prefer-closest-numa-nodes": "stable",
  "max-allowable-numa-nodes": "beta",
};
/** The number of hints grows exponentially with the nodes. */
const NODES_MAX = 8;

/** Throws Kubernetes' message for an option that cannot be used. */
export function parseTopologyOptions(values: Readonly<Record<string, string>>, gates: OptionGates): TopologyOptions {
  let options: TopologyOptions = { prefersClosest: false, nodesMax: NODES_MAX };
  for (const [name, value] of Object.entries(values)) {
    checkStage(name, gates);
    if (name === "prefer-closest-numa-nodes") {
      options = { ...options, prefersClosest: parseGoBool(`bad value for option "${name}"`, value) };
    } else {
      options = { ...options, nodesMax: parseNodesMax(name, value) };
    }
  }
  return options;
}

function checkStage(name: string, gates: OptionGates): void {
  const stage = STAGES[name];
  if (stage === undefined) throw new Error(`unknown Topology Manager Policy option: "${name}"`);
  if (stage !== "stable" && !gates[stage]) {
    throw new Error(`topology manager policy ${stage}-level options not enabled, but option "${name}" provided`);
  }
}

function parseNodesMax(name: string, value: string): number {
  if (!/^[+-]?\d+$/.test(value)) {
    const cause = `strconv.Atoi: parsing ${JSON.stringify(value)}: invalid syntax`;
    throw new Error(`unable to convert policy option to integer "${name}": ${cause}`);
  }
  const number = Number(value);
  if (number < NODES_MAX) throw new Error(`the minimum value of "${name}" should not be less than ${NODES_MAX}`);
  return number;
}

/** Accepts what Go's `strconv.ParseBool` accepts. */
export function parseGoBool(prefix: string, value: string): boolean {
  if (["1", "t", "T", "TRUE", "true", "True"].includes(value)) return true;
  if (["0", "f", "F", "FALSE", "false", "False"].includes(value)) return false;
  throw new Error(`${prefix}: strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`);
}
