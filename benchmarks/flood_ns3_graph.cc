// The flood on ns-3's SimpleNetDevice, over a channel that delivers to the neighbors in a graph alone.
//
// flood_ns3_graph <network file> <floods> <jitter from, s> <jitter to, s> <airtime, s> <frame, bytes>
// prints "<receptions> <seconds of process time, from making the nodes to the last reception>".
// The channel schedules an event for each reception, as SimpleChannel does; a jittered transmission is another.
#include "ns3/core-module.h"
#include "ns3/network-module.h"

#include <ctime>
#include <fstream>
#include <iostream>
#include <vector>

using namespace ns3;

static const uint16_t PROTOCOL = 0x88b5; // "local experimental"

// SimpleChannel hands a frame to every device; this one to the sender's neighbors.
class GraphChannel : public SimpleChannel
{
  public:
    Time airtime;
    std::vector<std::vector<Ptr<SimpleNetDevice>>> neighbors; // by the sender's node number

    void Send(Ptr<Packet> packet, uint16_t protocol, Mac48Address to, Mac48Address from, Ptr<SimpleNetDevice> sender) override
    {
        for (const auto& receiver : neighbors[sender->GetNode()->GetId()])
        {
            Simulator::ScheduleWithContext(receiver->GetNode()->GetId(), airtime, &SimpleNetDevice::Receive, receiver,
                                           packet->Copy(), protocol, to, from);
        }
    }
};

class Flooder : public Object
{
  public:
    static uint64_t receptions;
    Ptr<SimpleNetDevice> device;
    Ptr<UniformRandomVariable> jitter;
    uint32_t frame_B;
    std::vector<bool> known;

    void Publish(uint32_t publication)
    {
        known[publication] = true;
        Simulator::Schedule(Seconds(jitter->GetValue()), &Flooder::Transmit, this, publication);
    }

    bool Receive(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&)
    {
        uint32_t publication;
        packet->CopyData(reinterpret_cast<uint8_t*>(&publication), sizeof publication);
        ++receptions;
        if (!known[publication])
        {
            Publish(publication);
        }
        return true;
    }

  private:
    void Transmit(uint32_t publication)
    {
        std::vector<uint8_t> frame(frame_B);
        *reinterpret_cast<uint32_t*>(frame.data()) = publication;
        device->Send(Create<Packet>(frame.data(), frame_B), device->GetBroadcast(), PROTOCOL);
    }
};

uint64_t Flooder::receptions = 0;

int main(int argc, char** argv)
{
    std::ifstream file(argv[1]);
    uint32_t floods = std::stoul(argv[2]);
    size_t count;
    double range_m;
    file >> count >> range_m;
    std::vector<std::vector<size_t>> graph(count);
    for (auto& neighbors : graph)
    {
        double x;
        double y;
        size_t degree;
        file >> x >> y >> degree;
        neighbors.resize(degree);
        for (auto& neighbor : neighbors)
        {
            file >> neighbor;
        }
    }
    std::clock_t start = std::clock();

    Ptr<GraphChannel> channel = CreateObject<GraphChannel>();
    channel->airtime = Seconds(std::stod(argv[5]));
    channel->neighbors.resize(count);
    Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
    jitter->SetAttribute("Min", DoubleValue(std::stod(argv[3])));
    jitter->SetAttribute("Max", DoubleValue(std::stod(argv[4])));

    NodeContainer nodes;
    nodes.Create(count);
    std::vector<Ptr<Flooder>> flooders;
    for (size_t i = 0; i < count; ++i)
    {
        Ptr<Flooder> flooder = CreateObject<Flooder>();
        flooder->device = CreateObject<SimpleNetDevice>();
        flooder->device->SetAddress(Mac48Address::Allocate());
        nodes.Get(i)->AddDevice(flooder->device);
        flooder->device->SetChannel(channel);
        flooder->device->SetReceiveCallback(MakeCallback(&Flooder::Receive, flooder));
        flooder->jitter = jitter;
        flooder->frame_B = std::stoul(argv[6]);
        flooder->known.resize(floods);
        flooders.push_back(flooder);
    }
    for (size_t i = 0; i < count; ++i)
    {
        for (size_t neighbor : graph[i])
        {
            channel->neighbors[i].push_back(flooders[neighbor]->device);
        }
    }
    for (uint32_t i = 0; i < floods; ++i)
    {
        Simulator::ScheduleWithContext(0, Seconds(i), &Flooder::Publish, flooders[0], i);
    }
    Simulator::Run();
    std::cout << Flooder::receptions << " " << double(std::clock() - start) / CLOCKS_PER_SEC << std::endl;
}
