# batch.pl: makes many attempts in one sandbox, each in its own process, and prints the answer of each. The sandbox runs it with
# perl -e: starting a sandbox costs more than a hundred attempts.
# Always: an attempt that dies, hangs or ends its process is an answer too, and never stops the others.
#
# Given: $HELPERS, helpers.pl as text, and $NUMBERS, the names and numbers of system calls. Its input has the places and the
# attempts, separated by zero bytes.
our (%V, %NR, @in, $HELPERS, $NUMBERS);
%NR = split / /, $NUMBERS;
# allowed (eval): the helpers are also sent elsewhere as text.
eval $HELPERS; die $@ if $@;
{ local $/; @in = split /\0/, <STDIN>, -1 }
for (1 .. shift @in) { my ($name, $value) = split /=/, shift(@in), 2; $V{$name} = $value }
$| = 1;
for my $index (0 .. $#in) {
  my $file = "/dev/shm/answer.$$.$index";
  my $pid = fork // die "fork: $!";
  if (!$pid) {
    alarm 20;
    open STDIN, '<', '/dev/null'; open STDOUT, '>', $file or POSIX::_exit(3); open STDERR, '>&', \*STDOUT; $| = 1; $! = 0;
    my $own = $$;
    # allowed (eval): the attempts are texts.
    eval $in[$index]; print "program error = $@\n" if $@;
    finish() if $$ == $own; POSIX::_exit(0);
  }
  waitpid $pid, 0; my $how = $?;
  my $said = ''; if (open my $answer, '<', $file) { read $answer, $said, 1 << 20; close $answer }
  $said = whole($said, 'the attempt') . ended($how, 'the attempt');
  unlink $file;
  print "attempt\t$index\t", unpack('H*', $said), "\n";
}
