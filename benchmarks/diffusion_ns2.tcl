# One-phase pull of diffusion3 on 802.11, as ns-2's own examples set it up, but on our network and without traces.
# ns diffusion_ns2.tcl <network file> <sink> <source> <trace file> <seconds>; the network file is that of native.py.
# It prints "process_s" and process seconds: loading ns-2, making the nodes, the events.
# The ping source publishes every five seconds, its receiver's interest is repeated every thirty (both built in).

# Process time so far in seconds, which Linux has to the nanosecond.
proc process_s {} {
    set file [open /proc/self/schedstat]
    set nanoseconds [lindex [gets $file] 0]
    close $file
    return [expr $nanoseconds / 1e9]
}

set loaded_s [process_s]
lassign $argv path sink source trace seconds
set file [open $path]
lassign [gets $file] count range_m
# 250 m is the range that ns-2's default transmit power and receive threshold have; so the network is scaled to it.
set scale [expr 250.0 / $range_m]
set largest 1.0
for {set i 0} {$i < $count} {incr i} {
    lassign [gets $file] x y
    set x_($i) [expr $x * $scale]
    set y_($i) [expr $y * $scale]
    set largest [expr max($largest, $x_($i), $y_($i))]
}
close $file

# What is not heard does not disturb, as in the workbench; the default senses more than twice as far.
Phy/WirelessPhy set Pt_ 0.2818
Phy/WirelessPhy set freq_ 914e+6
Phy/WirelessPhy set RXThresh_ 3.652e-10
Phy/WirelessPhy set CSThresh_ 3.652e-10
Queue/DropTail/PriQueue set Prefer_Routing_Protocols 1

set ns_ [new Simulator]
$ns_ trace-all [open $trace w]
set tracing [expr {$trace eq "/dev/null" ? "OFF" : "ON"}]
set topography [new Topography]
$topography load_flatgrid [expr int($largest) + 2] [expr int($largest) + 2]
set god_ [create-god $count]
$ns_ node-config -adhocRouting Directed_Diffusion -diffusionFilter OnePhasePullFilter \
    -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 -antType Antenna/OmniAntenna \
    -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -channel [new Channel/WirelessChannel] \
    -topoInstance $topography -agentTrace OFF -routerTrace OFF -macTrace $tracing -movementTrace OFF
for {set i 0} {$i < $count} {incr i} {
    set node_($i) [$ns_ node $i]
    $node_($i) random-motion 0
    $god_ new_node $node_($i)
    $node_($i) set X_ $x_($i)
    $node_($i) set Y_ $y_($i)
    $node_($i) set Z_ 0
}

set receiver [new Application/DiffApp/PingReceiver/OPP]
$ns_ attach-diffapp $node_($sink) $receiver
$ns_ at 0 "$receiver subscribe"
set sender [new Application/DiffApp/PingSender/OPP]
$ns_ attach-diffapp $node_($source) $sender
$ns_ at 0 "$sender publish"
proc finish {} {
    global loaded_s made_s ns_
    $ns_ flush-trace
    set end_s [process_s]
    puts "process_s $loaded_s [expr $made_s - $loaded_s] [expr $end_s - $made_s]"
    flush stdout
    exit 0
}
$ns_ at $seconds finish
set made_s [process_s]
$ns_ run
