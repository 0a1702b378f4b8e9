// attack/table/table.ts: all attempts. `ags doctor --attack` runs them all; tests run them with every backend; SECURITY.md names them.
import type { AnyAttack, Attack } from './attack.ts';
import { AGENT_ATTACKS } from './agents.ts';
import { ENGINE_ATTACKS, ENGINE_CONTROL } from './engine.ts';
import { FILE_ATTACKS } from './files.ts';
import { GATEWAY_ATTACKS } from './gateway.ts';
import { LONE_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from './git.ts';
import { GREED_ATTACKS } from './greed-programs.ts';
import { IDENTITY_ATTACKS } from './identity.ts';
import { KERNEL_ATTACKS } from './kernel.ts';
import { LASTING_NEIGHBOUR_ATTACKS, LIVE_NEIGHBOUR_ATTACKS } from './neighbours.ts';
import { NETWORK_ATTACKS } from './network.ts';
import { SECRET_ATTACKS } from './secrets.ts';
import { LASTING_SERVICE_ATTACKS, SERVICE_ATTACKS } from './services.ts';

/** From inside, without a neighbour. */
export const INSIDE_ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...KERNEL_ATTACKS,
  ...NETWORK_ATTACKS,
  ...IDENTITY_ATTACKS,
  ...GATEWAY_ATTACKS,
  ...SECRET_ATTACKS,
  ...SERVICE_ATTACKS,
];

export const ATTACKS: readonly AnyAttack[] = [
  ...INSIDE_ATTACKS,
  ...LIVE_NEIGHBOUR_ATTACKS,
  ...LASTING_NEIGHBOUR_ATTACKS,
  ...LASTING_SERVICE_ATTACKS,
  ENGINE_CONTROL,
  ...ENGINE_ATTACKS,
  ...GIT_ATTACKS,
  ...MERGE_ATTACKS,
  ...AGENT_ATTACKS,
  ...LONE_ATTACKS,
  ...GREED_ATTACKS,
];
