# broker-server.pl: how the programs in containers are received: a broker listens, hands descriptors and words over, and hears
# whether they are ready. A part of stream-broker.pl, relay.pl and nested-broker.pl. Expects sockets.pl, $sendmsg and fail().
# Always: a place to connect to is removed as soon as the expected program has come.
sub listen_at {
  my ($path, $count) = @_;
  unlink $path;
  socket(my $listening, 1, 1, 0) or return undef;
  bind($listening, pack 'Sa108', 1, $path) && chmod(0666, $path) && listen($listening, $count) ? $listening : undef;
}
sub give {
  my ($guest, $given, @words) = @_;
  send_message($sendmsg, fileno $guest, '.', @$given) && write_all($guest, pack 'N/a*', pack '(N/a*)*', @words);
}
sub expect { my ($name) = @_; listen_at("$name/s", 1) // fail("listen for the $name process") }
sub welcome {
  my ($name, $listening, $given, @words) = @_;
  accept(my $guest, $listening) or fail("wait for the $name process");
  close $listening; unlink "$name/s";
  give($guest, $given, @words) or fail("hand the streams to the $name process");
  $guest;
}
sub hear {
  my ($guest, $name) = @_;
  my $said = '';
  while ($said !~ /\n/) { sysread($guest, $said, 4096, length $said) or last }
  return if $said =~ /^r/;
  print STDERR 'ags: ', $said =~ /^f(.*)/ ? $1 : "the $name process ended too early", "\n"; exit 96;
}
