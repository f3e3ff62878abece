/** Where our agent is meant to do otherwise than the recorded one. */

export interface Deliberate {
  readonly why: string;
  /** The differences that are meant, as they are told; any other is one. */
  readonly differences: readonly string[];
}

export const deliberate: Readonly<Record<string, Deliberate>> = {
  "cfg-a-preempt-victim": {
    why: "a pod that had to make room has failed, however its containers left; Kubernetes' documentation says so",
    differences: [
      "phases: Pending, Running, Succeeded",
      "  not Pending, Running, Failed",
      "reason: ; not Preempting",
      "message: ; not Preempted in order to admit critical pod",
      "condition Initialized: True PodCompleted; not True",
      "condition Ready: False PodCompleted; not False PodFailed",
      "condition ContainersReady: False PodCompleted; not False PodFailed",
    ],
  },
  "emptydir-sizelimit": {
    why: "a pod that was evicted has failed, however its containers left; Kubernetes' documentation says so",
    differences: [
      "phases: Pending, Running, Succeeded",
      "  not Pending, Running, Failed",
      "reason: ; not Evicted",
      'message: ; not Usage of EmptyDir volume "v" exceeds the limit "5Mi". ',
      "condition Initialized: True PodCompleted; not True",
      "condition Ready: False PodCompleted; not False PodFailed",
      "condition ContainersReady: False PodCompleted; not False PodFailed",
    ],
  },
  "emptydir-sizelimit-exit1": {
    why: "how the container ended is known, since its record is kept until that has been told",
    differences: [
      "states of c: waiting ContainerCreating #0, running #0, waiting ContainerCreating #1, " +
        "terminated ContainerStatusUnknown 137 #1",
      "       not waiting ContainerCreating #0, running #0, terminated Error 1 #0",
      'end of c: terminated ContainerStatusUnknown 137 "The container could not be located when the pod was ' +
        'terminated"; ready false; started false; not terminated Error 1; ready false; started false',
    ],
  },
  "subpath-escape": {
    why: "why a container cannot start is told when it is known, not a sync later",
    differences: [
      "states of c: waiting PodInitializing #0",
      "       not waiting PodInitializing #0, waiting CreateContainerConfigError #0",
      "end of c: waiting PodInitializing; ready false; started false; not waiting CreateContainerConfigError " +
        '"failed to prepare subPath for volumeMount "v" of container "c""; ready false; started false',
    ],
  },
  "static-mirror-force-deleted": {
    why: "a mirror pod that was deleted comes back at once, however it was deleted; Kubernetes' agent took a minute",
    differences: [
      "phases: Pending, Running",
      "  not Pending, Running, Pending, Running",
      "states of c: waiting ContainerCreating #0, running #0",
      "       not waiting ContainerCreating #0, running #0, terminated Completed 0 #0",
      "condition PodReadyToStartContainers: True; not False",
      "condition Ready: True; not False ContainersNotReady containers with unready status: [c]",
      "condition ContainersReady: True; not False ContainersNotReady containers with unready status: [c]",
      "end of c: running; ready true; started true; not terminated Completed 0; ready false; started false",
    ],
  },
};
