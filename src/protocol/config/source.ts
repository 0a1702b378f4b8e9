// protocol/config/source.ts: where a value is stored that no program inside may read.
import { list, section, text, words } from './forms.ts';
import { ENV_NAME, PLACE, WORDS } from './words.ts';

export const source = section({
  env: text(ENV_NAME, WORDS.envName).meta({ description: 'A variable of your own environment.' }),
  file: text(PLACE, WORDS.place).meta({ description: 'A file; trailing line breaks are removed.' }),
  command: list(words('a word of the command'), 'words: a program and its arguments')
    .min(1, { error: 'a program and its arguments' })
    .meta({ description: 'A program of this machine, with its arguments, that prints the value.' }),
  keychain: text(/^[^/]+\/[^/]+$/, 'service/account').meta({ description: 'A keychain entry: service/account.' }),
}).partial();
