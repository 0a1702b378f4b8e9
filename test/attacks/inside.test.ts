// test/attacks/inside.test.ts: every attempt of the tables from inside a sandbox, as root and as a user, over both kinds of workspace.
// needs: sandbox
import { insideAttacks } from './inside.ts';

insideAttacks(['--backend', 'native']);
