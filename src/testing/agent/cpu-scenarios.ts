/** The examples of Kubernetes' documentation of the CPU manager: which containers get CPUs of their own. */
import type { ResourceRequirements } from "../../api/core/resources/schema.ts";

export interface CpuScenario {
  readonly title: string;
  readonly resources: ResourceRequirements;
  readonly hasOwnCpus: boolean;
}

/** With `cpus` of their own, so that the table fits small machines too. */
export function listCpuScenarios(cpus: number): readonly CpuScenario[] {
  const [whole, part] = [String(cpus), String(cpus - 0.5)];
  const guaranteed = (cpu: string): ResourceRequirements => {
    const list = { cpu, memory: "20Mi" };
    return { requests: list, limits: list };
  };
  const memory = { limits: { memory: "20Mi" }, requests: { memory: "10Mi" } };
  const burstable = { limits: { memory: "20Mi", cpu: whole }, requests: { memory: "10Mi", cpu: String(cpus / 2) } };
  return [
    { title: "best-effort", resources: {}, hasOwnCpus: false },
    { title: "memory only", resources: memory, hasOwnCpus: false },
    { title: "burstable", resources: burstable, hasOwnCpus: false },
    { title: "guaranteed, whole CPUs", resources: guaranteed(whole), hasOwnCpus: true },
    { title: "guaranteed, part of a CPU", resources: guaranteed(part), hasOwnCpus: false },
    {
      title: "limits only, which are requests as well",
      resources: { limits: { memory: "20Mi", cpu: whole } },
      hasOwnCpus: true,
    },
  ];
}
